"""T191: a sign-out deletes the tokens also if the entry's secrets or the store have changed."""

import json
import os
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from aiohttp import web
from msgspec.structs import replace

from dragoman.auth.needs_auth import NeedsAuthCache
from dragoman.auth.revocation import sign_out
from dragoman.auth.stores.base import Vault
from dragoman.auth.tokens import OAuthClient, encode_account
from tests.servers.web import Ask
from tests.servers.web.auth_world import AuthWorld
from tests.torture.signed_in import account_of, credentials_of, entry_of

pytestmark = pytest.mark.requirement("AUT-5")

KEYS = {
    "no key any more": None,
    "a reference to nothing": "secret-store:0123456789abcdef",
    "no key at all": "not a key",
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
async def test_t191_a_client_that_cannot_sign_any_more_is_signed_out(home: Path, key: str | None):
    async with AuthWorld() as world:
        client = OAuthClient("client-1", auth_method="private_key_jwt")
        account = replace(account_of(world), client=client)
        Vault().put(entry_of(world).key, encode_account(account))
        problem = await sign_out(credentials_of(world, private_key=key))
    assert problem is not None
    assert problem.startswith("the tokens could not be revoked: ")
    assert Vault().keys() == []
    assert world.revoked == []


async def test_t191_a_refused_revocation_of_one_token_does_not_skip_the_other(home: Path):
    async with AuthWorld() as world:
        asked: list[str] = []

        async def refuses(ask: Ask) -> web.Response | None:
            form = dict(parse_qsl(ask.body.decode()))
            asked.append(form["token_type_hint"])
            return web.Response(status=503) if form["token_type_hint"] == "refresh_token" else None

        world.on["/revoke"] = refuses
        account = account_of(world)
        assert account.tokens is not None
        Vault().put(entry_of(world).key, encode_account(account))
        credentials = credentials_of(world)
        problem = await sign_out(credentials)
        left = await credentials.load(fresh=True)
    assert problem == "the refresh token could not be revoked: HTTP 503"
    assert asked == ["refresh_token", "access_token"]
    assert world.revoked == [account.tokens.access_token]
    assert left is not None, "the registration stays"
    assert left.tokens is None


def test_t191_a_symlink_in_place_of_a_marker_file_is_not_followed(tmp_path: Path):
    target = tmp_path / "precious.json"
    target.write_text(json.dumps({"precious": True}))
    (tmp_path / "x.needs-auth").symlink_to(target)
    NeedsAuthCache(tmp_path, "x").remember()
    assert json.loads(target.read_text()) == {"precious": True}


def test_t191_a_named_pipe_in_place_of_a_marker_file_does_not_block(tmp_path: Path):
    os.mkfifo(tmp_path / "x.needs-auth")
    NeedsAuthCache(tmp_path, "x").remember()
