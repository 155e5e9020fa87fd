"""`dragoman mcp remove`: removes a server from a configuration file."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from dragoman.cleaning import one_line
from dragoman.cli.commands.completion import complete_server
from dragoman.cli.common import load_and_report
from dragoman.cli.options import json_option, scope_option
from dragoman.cli.render.columns import echo_wrapped
from dragoman.cli.render.document import echo
from dragoman.cli.sign_ins import credentials_of
from dragoman.config.edits import places_of, remove_server
from dragoman.errors import ConfigError, DragomanError, NotFound

if TYPE_CHECKING:
    from dragoman.auth.oauth import OAuthCredentials
    from dragoman.config.load import Configuration


@click.command("remove")
@click.argument("name", shell_complete=complete_server)
@scope_option
@json_option
def command(name: str, scope: str | None, as_json: bool) -> None:
    """Removes the server NAME from the file that defines it, and signs out of it."""
    configuration = load_and_report()
    sources = configuration.sources
    places = [place for place in places_of(sources, name) if scope in (None, place[0])]
    if not places:
        where = f" in scope {scope}" if scope else " in your files"
        raise NotFound(
            f"there is no server {name!r}{where}", hint="`dragoman mcp list` shows the scope of each server."
        )
    if len({found for found, _ in places}) > 1:
        scopes = ", ".join(dict.fromkeys(found for found, _ in places))
        raise ConfigError(
            f"{name!r} is defined in several scopes: {scopes}", hint="Choose one with -s SCOPE."
        )
    found, path = places[0]
    remove_server(sources, found, path, name)
    problem = _forget_secrets(configuration, name) if len(places_of(sources, name)) == 0 else None
    if as_json:
        echo({"removed": name, "scope": found, "file": str(path), "problem": problem})
    else:
        click.echo(f"Removed {one_line(name)} from {found} ({one_line(str(path))})")
        if problem is not None:
            echo_wrapped(problem, label="! ", colour="yellow", err=True)


def _forget_secrets(configuration: Configuration, name: str) -> str | None:
    """Revokes and deletes the tokens and secrets of a server that is in no file. Returns the first
    problem."""
    server = configuration.servers.get(name)
    if server is None or server.eligibility not in ("ready", "disabled"):
        return None
    credentials = credentials_of(configuration, server)
    if credentials is None or not credentials.vault.local.folder.exists():
        return None
    from dragoman.auth.client_secrets import forget_client_secret
    from dragoman.auth.stores.base import StoreFailed

    entry = credentials.entry  # taken before its references are replaced by secrets

    async def forget() -> list[str | None]:
        accounts = [credentials.for_identity(identity) for identity in credentials.stored_identities()]
        return [await _forget_account(account) for account in accounts]

    problems = asyncio.run(forget())
    try:
        for reference in (entry.client.client_secret, entry.private_key, entry.workload_token):
            forget_client_secret(credentials.vault.local, reference, entry.server, entry.url)
    except StoreFailed as error:
        problems.append(str(error))
    return next((problem for problem in problems if problem is not None), None)


async def _forget_account(account: OAuthCredentials) -> str | None:
    from dragoman.auth.errors import AuthProblem
    from dragoman.auth.revocation import sign_out

    try:
        problem = await sign_out(account)
        await account.forget()
    except (AuthProblem, DragomanError) as error:
        return str(error)
    return problem
