"""A network, a store or a keychain that fails for a while costs no sign-in; settings that change count."""

import socket
from pathlib import Path
from typing import Any

import keyring
import pytest
from aiohttp import web
from msgspec.structs import replace

from dragoman.auth.discovery import discover
from dragoman.auth.entry import ConfiguredClient
from dragoman.auth.errors import Refused, Unavailable
from dragoman.auth.http import NetworkAccess, OAuthHttp
from dragoman.auth.stores.base import StoreFailed, Vault
from dragoman.auth.stores.keyring import KeyringStore
from dragoman.auth.tokens import OAuthClient, encode_account
from dragoman.credentials import Challenge
from tests.servers.web.auth_world import AuthWorld
from tests.torture.signed_in import account_of, credentials_of, entry_of, sign_in_before

pytestmark = [pytest.mark.requirement("AUT-3"), pytest.mark.usefixtures("home")]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_a_failed_lookup_of_the_server_is_not_remembered(monkeypatch: pytest.MonkeyPatch):
    http = OAuthHttp("https://mcp.corp.example/mcp", NetworkAccess())

    def fails(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    with pytest.raises(Unavailable, match=r"mcp\.corp\.example could not be resolved"):
        await http.get("https://login.corp.example/x")

    def private(*_: Any, **__: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.7", 443))]

    monkeypatch.setattr(socket, "getaddrinfo", private)
    assert await http._private_allowed()  # pyright: ignore[reportPrivateUsage]


async def test_after_a_403_a_newer_token_of_another_process_is_used():
    async with AuthWorld() as world:
        account = sign_in_before(world)
        credentials = credentials_of(world)
        assert account.tokens is not None
        sent = await credentials.headers()
        assert sent == bearer(account.tokens.access_token)
        newer = sign_in_before(world)
        assert newer.tokens is not None
        refusal = Challenge(403, ('Bearer error="insufficient_scope", scope="write"',), sent=sent)
        assert await credentials.renew(refusal)
        assert await credentials.headers() == bearer(newer.tokens.access_token)


async def test_a_refresh_that_cannot_be_stored_is_used(monkeypatch: pytest.MonkeyPatch):
    async with AuthWorld() as world:
        sign_in_before(world)
        credentials = credentials_of(world)
        sent = await credentials.headers()

        def fails(*_: Any) -> None:
            raise StoreFailed("the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(Vault, "put", fails)
            assert await credentials.renew(Challenge(401, sent=sent))
            renewed = await credentials.headers()
            assert renewed != sent
        credentials.accepted(renewed)
        assert await credentials.renew(Challenge(401, sent=renewed))  # with the new refresh token
        assert (world.refreshes, world.reuses) == (2, 0)


async def test_a_refresh_uses_the_secret_that_the_entry_has_now():
    async with AuthWorld() as world:
        world.server_document["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
        client = OAuthClient("mine", "old-secret", "client_secret_post")
        entry = entry_of(world, client=ConfiguredClient("mine", "new-secret"))
        Vault().put(entry.key, encode_account(replace(account_of(world), client=client)))
        credentials = credentials_of(world, client=ConfiguredClient("mine", "new-secret"))
        assert await credentials.renew(Challenge(401, sent=await credentials.headers()))
        assert [each.get("client_secret") for each in world.token_requests] == ["new-secret"]


async def test_a_wrong_client_secret_does_not_delete_the_tokens():
    async with AuthWorld() as world:

        async def wrong(*_: Any) -> web.Response:
            return web.json_response({"error": "invalid_client"}, status=401)

        sign_in_before(world)
        credentials = credentials_of(world)
        sent = await credentials.headers()
        world.on["/token"] = wrong
        with pytest.raises(Exception, match="invalid_client"):
            await credentials.renew(Challenge(401, sent=sent))
        stored = await credentials_of(world).load()
        assert stored is not None
        assert stored.tokens is not None


@pytest.mark.parametrize("status", [429, 503])
async def test_an_overloaded_server_does_not_count_as_one_without_metadata(status: int):
    async with AuthWorld() as world:

        async def busy(*_: Any) -> web.Response:
            return web.Response(status=status)

        world.on["/.well-known/oauth-authorization-server"] = busy
        entry = entry_of(world)
        http = OAuthHttp(entry.url, NetworkAccess())
        with pytest.raises(Unavailable, match=f"HTTP {status}"):
            await discover(http, entry.wanted(None), {})


async def test_metadata_at_a_configured_url_must_be_that_of_the_configured_issuer():
    async with AuthWorld() as world:
        url = f"{world.auth.origin}/.well-known/oauth-authorization-server"
        http = OAuthHttp(world.mcp.url, NetworkAccess())
        other = entry_of(world, metadata_url=url, issuer="https://login.example.com")
        with pytest.raises(Refused, match="is that of another issuer"):
            await discover(http, other.wanted(None), {})
        same = entry_of(world, metadata_url=url, issuer=world.auth.origin)
        assert (await discover(http, same.wanted(None), {})).auth_server.issuer == world.auth.origin


def test_a_secret_that_is_replaced_while_it_is_read_is_read_again(monkeypatch: pytest.MonkeyPatch):
    entries: dict[str, str] = {}
    store = KeyringStore()
    monkeypatch.setattr(keyring, "get_password", lambda _, name: entries.get(name))
    monkeypatch.setattr(keyring, "set_password", lambda _, name, text: entries.update({name: text}))
    monkeypatch.setattr(keyring, "delete_password", lambda _, name: entries.pop(name))
    store.put("k", b"old" * 1000)
    reads = 0

    def replaced(_: str, name: str) -> str | None:
        nonlocal reads
        reads += 1
        found = entries.get(name)
        if reads == 1:  # another process writes just after the head was read
            monkeypatch.setattr(keyring, "get_password", lambda _, name: entries.get(name))
            store.put("k", b"new" * 1000)
        return found

    monkeypatch.setattr(keyring, "get_password", replaced)
    assert store.get("k") == b"new" * 1000


async def test_a_token_of_another_type_than_requested_is_refused(tmp_path: Path):
    async with AuthWorld() as world:
        sign_in_before(world)
        credentials = credentials_of(world)
        sent = await credentials.headers()

        async def bound(*_: Any) -> web.Response:
            return web.json_response({**world.issue(), "token_type": "DPoP"})

        world.on["/token"] = bound
        with pytest.raises(Exception, match="a token of another type than was asked for"):
            await credentials.renew(Challenge(401, sent=sent))
