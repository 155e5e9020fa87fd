"""The sign-ins of configured servers, for commands that contact no MCP server."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dragoman.cleaning import one_line
from dragoman.cli.common import find_server, load_and_report
from dragoman.cli.render.columns import echo_wrapped
from dragoman.cli.render.document import echo
from dragoman.errors import ConfigError, SignInFailed

if TYPE_CHECKING:
    from dragoman.auth.oauth import OAuthCredentials
    from dragoman.auth.state import SignInState
    from dragoman.config.load import Configuration
    from dragoman.config.merge import ConfiguredServer
    from dragoman.gateway.store.accounts import SharedAccounts

T = TypeVar("T")


def credentials_of(
    configuration: Configuration, server: ConfiguredServer, accounts: SharedAccounts | None = None
) -> OAuthCredentials | None:
    """The OAuth credentials of a server; None if it has none. `accounts`: those of a gateway."""
    from dragoman.connections.factory import TransportDependencies, oauth_credentials

    if server.config is None:
        return None
    dependencies = TransportDependencies()
    dependencies.accounts = accounts
    dependencies.identity_provider = lambda: configuration.xaa_idp
    return oauth_credentials(server.name, server.config, dependencies)


def company_credentials(configuration: Configuration) -> OAuthCredentials | None:
    """The credentials at the company's identity provider; None if none is configured."""
    from dragoman.connections import factory

    if configuration.xaa_idp is None:
        return None
    return factory.company_credentials(configuration.xaa_idp, factory.TransportDependencies())


def gateway_accounts(settings_file: Path | None, server: str) -> SharedAccounts | None:
    """The accounts that the replicas of a gateway share; None without a settings file."""
    if settings_file is None:
        return None
    from dragoman.gateway.callers import accounts_in
    from dragoman.gateway.settings_file import read_settings
    from dragoman.gateway.store.redis import RedisStore

    settings = read_settings(settings_file)
    if server in settings.caller_sign_in:
        raise ConfigError(
            f"each caller of the gateway signs in to {server!r} with an account of its own (callerSignIn)",
            hint="A caller signs in with the tool `authenticate`; see docs/guides/gateway.md.",
        )
    if settings.store is None:
        raise ConfigError(
            f'{one_line(str(settings_file))} has no "store", so the gateway has no shared sign-ins',
            hint="It uses the sign-ins of the machine on which it runs: leave out --gateway there.",
        )
    return accounts_in(RedisStore(settings.store))


def run_with_accounts(work: Coroutine[Any, Any, T], accounts: SharedAccounts | None) -> T:
    """Runs the work, and closes the accounts afterwards."""

    async def main() -> T:
        try:
            return await work
        finally:
            if accounts is not None:
                await accounts.close()

    return asyncio.run(main())


def sign_out_and_report(
    name: str, credentials: OAuthCredentials, accounts: SharedAccounts | None = None, *, as_json: bool
) -> None:
    """Signs out, and prints the result."""
    from dragoman.auth.errors import AuthProblem
    from dragoman.auth.revocation import sign_out

    async def work() -> tuple[bool, str | None]:
        try:
            account = await credentials.load(fresh=True)
            was_signed_in = account is not None and account.tokens is not None
        except AuthProblem as problem:  # the stored tokens cannot be read
            if accounts is not None:
                raise SignInFailed(name, problem.cause, hint=problem.hint) from None
            was_signed_in = True
        return was_signed_in, await sign_out(credentials)

    was_signed_in, problem = run_with_accounts(work(), accounts)
    if as_json:
        echo({"server": name, "wasSignedIn": was_signed_in, "problem": problem})
        return
    click.echo(f"Signed out of {one_line(name)}." if was_signed_in else f"{one_line(name)}: not signed in.")
    if problem is not None:
        echo_wrapped(problem, label="! ", colour="yellow", err=True)


def required_credentials(
    name: str, identity: str | None, settings_file: Path | None
) -> tuple[OAuthCredentials, SharedAccounts | None]:
    """The credentials of a server, and the accounts of the gateway that they belong to, if there is one."""
    configuration = load_and_report()
    server = find_server(configuration, name)
    accounts = gateway_accounts(settings_file, name)
    if server.eligibility not in ("ready", "disabled"):
        raise ConfigError(
            f"server {server.name!r} cannot be used: {server.reason}",
            hint="`dragoman mcp get` shows what to do.",
        )
    found = credentials_of(configuration, server, accounts)
    if found is None:
        from dragoman.connections.factory import oauth_unused

        raise oauth_unused(name)
    return (found if identity is None else found.for_identity(identity)), accounts


identity_option = click.option(
    "--identity",
    metavar="NAME",
    help="The name of another account than the entry uses (oauth.identity).",
)
gateway_option = click.option(
    "--gateway",
    "settings_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Use the sign-in that all replicas of a gateway share. FILE: their --config file.",
)


def state_as_json(state: SignInState) -> dict[str, Any]:
    return {
        "server": state.server,
        "status": state.status,
        "issuer": state.issuer,
        "resource": state.resource,
        "clientId": state.client_id,
        "scopes": state.scopes,
        "expiresInSeconds": state.expires_in_seconds,
        "isRefreshable": state.is_refreshable,
        "store": state.store,
    }


def described_state(state: SignInState) -> str:
    match state.status:
        case "signed-out":
            return "not signed in" if state.problem is None else one_line(state.problem, 200)
        case "expired":
            return f"the token of {one_line(state.issuer or '', 80)} has expired"
        case _:
            return f"signed in at {one_line(state.issuer or '', 80)}{_validity(state)}"


def _validity(state: SignInState) -> str:
    if state.expires_in_seconds is None:
        return ""
    if state.expires_in_seconds <= 0:
        return ", to be refreshed at the next use"
    return f", token valid for {_span(state.expires_in_seconds)}" + (
        "" if state.is_refreshable else ", then a new sign-in is needed"
    )


def _span(seconds: int) -> str:
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
