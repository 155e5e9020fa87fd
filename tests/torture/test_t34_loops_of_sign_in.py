"""T34: Servers that demand authorization again and again: more and more scopes, and fresh tokens that
are refused."""

from typing import Any

import pytest
from aiohttp import web

from dragoman import Host
from dragoman.auth.challenges import SCOPE_LIMIT
from dragoman.errors import HttpError, SignInFailed
from tests.servers.web import Ask, answers
from tests.servers.web.auth_world import SECRET, AuthWorld, Browser
from tests.torture.signed_in import host_of, sign_in_before

pytestmark = pytest.mark.requirement("AUT-4")


@pytest.mark.parametrize("methods", [None, [], ["plain"], "S256", ["s256"]], ids=str)
async def test_t34_without_pkce_no_browser_opens(methods: Any):
    browser = Browser()
    async with AuthWorld() as world, host_of(world) as host:
        await host.ready(timeout=20)
        world.server_document["code_challenge_methods_supported"] = methods
        with pytest.raises(SignInFailed) as caught:
            await host.sign_in("x", browser)
        assert caught.value.cause == "its authorization server does not state that it supports PKCE with S256"
        assert (browser.pages, world.registrations) == ([], [])


async def test_t34_the_entry_can_state_that_pkce_is_supported():
    async with AuthWorld() as world, host_of(world, assumePkce=True) as host:
        await host.ready(timeout=20)
        del world.server_document["code_challenge_methods_supported"]
        assert (await host.sign_in("x", Browser())).status == "connected"
        assert "code_verifier" in world.token_requests[0], "and it is used"


def always_insufficient_scope(scope: str) -> Any:
    return answers.challenge(403, f'Bearer error="insufficient_scope", scope="{scope}"')


async def refused_call(host: Host) -> HttpError:
    with pytest.raises(HttpError) as caught:
        await host.call("mcp__x__echo", {"text": "x"})
    return caught.value


async def test_t34_a_call_that_is_always_refused_is_sent_once_and_requests_no_token():
    async with AuthWorld() as world:
        sign_in_before(world)
        async with host_of(world) as host:
            await host.ready(timeout=20)
            world.mcp.on["tools/call"] = always_insufficient_scope("read write")
            for _ in range(3):
                assert (await refused_call(host)).status == 403
            assert len(world.mcp.asked("tools/call")) == 3
            assert world.token_requests == []
            assert host.servers["x"].status == "connected"


async def test_t34_a_step_up_requests_the_old_and_the_new_scopes_once():
    async with AuthWorld() as world:
        sign_in_before(world)
        async with host_of(world) as host:
            await host.ready(timeout=20)
            world.mcp.on["tools/call"] = always_insufficient_scope("write")
            await refused_call(host)
            for _ in range(2):
                browser = Browser()
                assert (await host.sign_in("x", browser)).status == "connected"
                (asked,) = browser.pages
                assert "&scope=read+write" in asked
                assert (await refused_call(host)).status == 403, "it is not content, and nothing goes round"
            assert [form["grant_type"] for form in world.token_requests] == ["authorization_code"] * 2


async def test_t34_after_a_step_up_the_call_is_allowed():
    async with AuthWorld() as world:
        sign_in_before(world)

        async def wants_write(ask: Ask) -> web.StreamResponse | None:
            is_new = ask.headers["Authorization"].endswith(world.newest)
            return None if is_new else await always_insufficient_scope("write")(ask)

        world.newest = "none yet"  # pyright: ignore
        world.mcp.on["tools/call"] = wants_write
        async with host_of(world) as host:
            await host.ready(timeout=20)
            await refused_call(host)
            await host.sign_in("x", Browser())
            world.newest = max(world.accepted, key=lambda each: int(each.rpartition("-")[2]))  # pyright: ignore
            assert (await host.call("mcp__x__echo", {"text": "x"})).text == "x"


@pytest.mark.requirement("AUT-3")
async def test_t34_a_fresh_token_that_is_refused_ends_the_attempts():
    async with AuthWorld() as world:
        sign_in_before(world)
        async with host_of(world) as host:
            await host.ready(timeout=20)
            world.on["/mcp"] = answers.challenge(401, "Bearer")
            world.mcp.asks.clear()
            with pytest.raises(Exception):  # noqa: B017 - the kind depends on the transport
                await host.call("mcp__x__echo", {"text": "x"})
            assert world.refreshes == 1
            for _ in range(3):
                await host.reconnect("x")
            assert host.servers["x"].status == "needs-auth"
            assert host.servers["x"].reason is not None
            assert "it refuses a token that its authorization server has just given" in (
                host.servers["x"].reason
            )
            assert world.refreshes == 1, "one that was just given is not exchanged for another"


async def test_t34_without_a_person_each_attempt_requests_at_most_one_token():
    async with AuthWorld() as world:
        oauth = {
            "clientId": "me",
            "clientSecret": SECRET,
            "grant": "client_credentials",
            "issuer": world.auth.origin,
        }
        world.on["/mcp"] = answers.challenge(401, "Bearer")
        async with host_of(world, **oauth) as host:
            await host.ready(timeout=20)
            assert host.servers["x"].status == "needs-auth"
            assert len(world.token_requests) <= 2
            assert len(world.mcp.asked("POST")) <= 3


def scopes(count: int, length: int = 8) -> list[str]:
    return [f"s{number}".ljust(length, "x") for number in range(count)]


@pytest.mark.parametrize("place", ["challenge", "resource", "refusal"])
async def test_t34_ten_thousand_scopes_are_truncated(place: str):
    many = scopes(10_000)
    browser = Browser()
    async with AuthWorld() as world:
        if place == "resource":
            world.resource_document["scopes_supported"] = many
        if place == "challenge":
            # A header of this size is not read by the HTTP library; the longest that is read.
            world.challenge = f'{world._challenge()}, scope="{" ".join(many[:700])}"'
        sign_in_before(world) if place == "refusal" else None
        async with host_of(world) as host:
            await host.ready(timeout=20)
            if place == "refusal":
                for start in range(0, 1000, 100):
                    world.mcp.on["tools/call"] = always_insufficient_scope(
                        " ".join(many[start : start + 100])
                    )
                    await refused_call(host)
            await host.sign_in("x", browser)
    (page,) = browser.pages
    asked = page.partition("&scope=")[2].partition("&")[0].split("+")
    assert len(asked) <= SCOPE_LIMIT + 1
    assert len(page) <= 8192


async def test_t34_scopes_that_make_the_url_too_long_are_refused_with_an_error():
    browser = Browser()
    async with AuthWorld() as world, host_of(world) as host:
        await host.ready(timeout=20)
        world.resource_document["scopes_supported"] = scopes(100, 256)
        with pytest.raises(SignInFailed) as caught:
            await host.sign_in("x", browser)
        assert caught.value.cause == "the URL of the page to sign in at would be longer than 8192 characters"
        assert caught.value.hint == "Fewer scopes make it shorter: oauth.scopes in the entry."
        assert browser.pages == []
