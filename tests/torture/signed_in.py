"""Sign-ins that were made before a test starts, and the credentials of one process."""

import time
from collections.abc import Iterable
from typing import Any

from dragoman import Host
from dragoman.auth.entry import OAuthSettings
from dragoman.auth.http import NetworkAccess
from dragoman.auth.metadata import TrustRules, read_auth_server
from dragoman.auth.oauth import OAuthCredentials
from dragoman.auth.stores.base import Vault
from dragoman.auth.tokens import Account, OAuthClient, Tokens, encode_account
from tests.servers.web.auth_world import AuthWorld

QUIET = {"DRAGOMAN_RECONNECT_ATTEMPTS": 0}


def entry_of(world: AuthWorld, **fields: Any) -> OAuthSettings:
    return OAuthSettings(server="x", url=world.mcp.url, **fields)


def credentials_of(
    world: AuthWorld, learned: list[str] | None = None, vault: Vault | None = None, **fields: Any
) -> OAuthCredentials:
    """Credentials as in another process: only the files are shared."""

    def learn(secrets: Iterable[str]) -> None:
        if learned is not None:
            learned.extend(secrets)

    return OAuthCredentials(entry_of(world, **fields), vault or Vault(), NetworkAccess, learn)


def account_of(world: AuthWorld, *, expires_in: float | None = 3600, **more: Any) -> Account:
    issued = world.issue()
    return Account(
        resource=world.mcp.url,
        auth_server=read_auth_server(
            world.server_document, expected_issuer=world.auth.origin, rules=TrustRules()
        ),
        client=OAuthClient("client-1", is_registered=True),
        tokens=Tokens(
            access_token=issued["access_token"],
            expires_at=None if expires_in is None else time.time() + expires_in,
            refresh_token=issued["refresh_token"],
            scopes=("read",),
        ),
        requested_scopes=("read",),
        **more,
    )


def sign_in_before(world: AuthWorld, *, expires_in: float | None = 3600, **fields: Any) -> Account:
    """Stores a sign-in; returns the account."""
    account = account_of(world, expires_in=expires_in)
    Vault().put(entry_of(world, **fields).key, encode_account(account))
    return account


def host_of(world: AuthWorld, *, more: dict[str, Any] | None = None, **oauth: Any) -> Host:
    servers = {"x": world.entry(**oauth), **(more or {})}
    return Host(servers, permission_mode="bypassPermissions", settings=QUIET)
