"""`dragoman mcp logout`: revokes and forgets the tokens of a server."""

from __future__ import annotations

import asyncio

import click

from dragoman.cleaning import one_line
from dragoman.cli.commands.completion import complete_server
from dragoman.cli.common import find_server, load_and_report
from dragoman.cli.options import json_option
from dragoman.cli.render.columns import echo_wrapped
from dragoman.cli.render.document import echo
from dragoman.cli.sign_ins import identity_option, required_credentials


@click.command("logout")
@click.argument("name", shell_complete=complete_server)
@identity_option
@json_option
def command(name: str, identity: str | None, as_json: bool) -> None:
    """Signs out of the server NAME: its tokens are revoked at the authorization server, then forgotten."""
    from dragoman.auth.revocation import sign_out

    configuration = load_and_report()
    credentials = required_credentials(configuration, find_server(configuration, name), identity)

    async def work() -> tuple[bool, str | None]:
        account = await credentials.load(fresh=True)
        was_signed_in = account is not None and account.tokens is not None
        return was_signed_in, await sign_out(credentials)

    was_signed_in, problem = asyncio.run(work())
    if as_json:
        echo({"server": name, "wasSignedIn": was_signed_in, "problem": problem})
        return
    click.echo(f"Signed out of {one_line(name)}." if was_signed_in else f"{one_line(name)}: not signed in.")
    if problem is not None:
        echo_wrapped(problem, label="! ", colour="yellow", err=True)
