"""T30: A server that names another authorization server gets no credential that belongs to the first one."""

from typing import Any

import pytest

from dragoman.auth.client_secrets import store_client_secret
from dragoman.auth.stores.base import Vault
from dragoman.errors import SignInFailed
from tests.servers.web.auth_world import SECRET, AuthWorld, Browser
from tests.torture.signed_in import host_of, sign_in_before

pytestmark = pytest.mark.requirement("AUT-1")


def move(world: AuthWorld) -> None:
    """The server names the third party, which has its own complete authorization server."""
    at = world.other.origin
    world.resource_document["authorization_servers"] = [at]
    world.elsewhere = {
        "issuer": at,
        "authorization_endpoint": f"{at}/authorize",
        "token_endpoint": f"{at}/token",
        "registration_endpoint": f"{at}/register",
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "client_id": "registered-elsewhere",
    }


async def test_t30_a_refresh_is_sent_only_to_the_issuer_of_the_token():
    async with AuthWorld() as world:
        sign_in_before(world)
        move(world)
        world.expire_tokens()
        async with host_of(world) as host:
            await host.ready(timeout=20)
            assert host.servers["x"].status == "connected", host.servers["x"].reason
        assert world.refreshes == 1
        assert world.other.asks == []


async def test_t30_a_sign_in_at_a_new_issuer_is_shown_and_sends_no_stored_credential():
    """The person is shown the new page; the credentials stored for the old issuer are not sent to it."""
    async with AuthWorld() as world:
        account = sign_in_before(world)
        assert account.tokens is not None
        move(world)
        world.expire_tokens()
        world.refresh_tokens.clear()
        browser = Browser()
        async with host_of(world) as host:
            await host.ready(timeout=20)
            assert host.servers["x"].status == "needs-auth"
            with pytest.raises(AssertionError):  # the page of the third party completes no sign-in
                await host.sign_in("x", browser)
        assert browser.notices == [
            f"x: it names another authorization server than before: {world.other.origin} instead of "
            f"{world.auth.origin}. What was stored for the old one is not used."
        ]
        assert [page.partition("?")[0] for page in browser.pages] == [f"{world.other.origin}/authorize"]
        assert "client-1" not in browser.pages[0], "the registration at the old one"
        assert [ask.path for ask in world.other.asks][1] == "/register"
        assert world.canaries_in(world.other) == []


@pytest.mark.parametrize("pinned", [False, True], ids=["confirmed once", "named by the entry"])
async def test_t30_a_client_secret_is_sent_only_to_its_issuer(pinned: bool):
    oauth: dict[str, Any] = {"clientId": "me", "clientSecret": SECRET}
    async with AuthWorld() as world:
        if pinned:
            oauth["issuer"] = world.auth.origin
        first = Browser(confirms=True)
        async with host_of(world, **oauth) as host:
            await host.ready(timeout=20)
            assert (await host.sign_in("x", first)).status == "connected"
            assert first.questions == ([] if pinned else [("x", world.auth.origin)])
            move(world)
            second = Browser(confirms=True)
            with pytest.raises(SignInFailed) as caught:
                await host.sign_in("x", second)
        assert caught.value.cause == (
            f"it names another authorization server than before: {world.other.origin} instead of "
            f"{world.auth.origin}"
        )
        assert (second.pages, second.questions) == ([], [])
        assert SECRET in world.canaries_in(world.auth)
        assert world.other.asks == []
        assert not any(SECRET in each for each in world.canaries_in(world.mcp))


async def test_t30_an_issuer_that_differs_by_a_trailing_slash_is_another_issuer():
    async with AuthWorld() as world:
        world.resource_document["authorization_servers"] = [f"{world.auth.origin}/tenant/"]
        oauth = {"clientId": "me", "clientSecret": SECRET, "issuer": f"{world.auth.origin}/tenant"}
        async with host_of(world, **oauth) as host:
            await host.ready(timeout=20)
            with pytest.raises(SignInFailed, match="it names another authorization server than before"):
                await host.sign_in("x", Browser(confirms=True))
        assert world.auth.asks == []


async def test_t30_a_reference_to_the_secret_of_another_server_is_refused():
    """An entry of a project may name any reference; the secret is resolved only for its own server."""
    reference = store_client_secret(Vault(), "work", "https://work.example/mcp", SECRET)
    async with AuthWorld() as world:
        browser = Browser(confirms=True)
        async with host_of(world, clientId="me", clientSecret=reference) as host:
            await host.ready(timeout=20)
            with pytest.raises(SignInFailed) as caught:
                await host.sign_in("x", browser)
        assert caught.value.cause == "the secret that its entry refers to was stored for another server"
        assert browser.pages == []
        for site in (world.mcp, world.auth, world.other):
            assert world.canaries_in(site) == []


async def test_t30_unattended_secrets_are_not_sent_before_a_person_confirmed_the_issuer():
    async with AuthWorld() as world:
        oauth = {"clientId": "me", "clientSecret": SECRET, "grant": "client_credentials"}
        async with host_of(world, **oauth) as host:
            await host.ready(timeout=20)
            assert host.servers["x"].status == "needs-auth"
            assert host.servers["x"].reason is not None
            assert "it is not known which authorization server the secrets" in host.servers["x"].reason
            assert world.auth.asks == []
            assert (await host.sign_in("x", Browser(confirms=True))).status == "connected"
        assert world.canaries_in(world.other) == []
        move(world)
        world.expire_tokens()
        async with host_of(world, **oauth) as host:
            await host.ready(timeout=20)
            assert host.servers["x"].status == "needs-auth"
        assert world.other.asks == []
