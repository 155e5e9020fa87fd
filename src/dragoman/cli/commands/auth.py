"""`dragoman auth`: the sign-ins of all servers, and of the company."""

from __future__ import annotations

import asyncio

import click

from dragoman.cleaning import one_line
from dragoman.cli.common import load_and_report
from dragoman.cli.main import CommandGroup
from dragoman.cli.options import json_option
from dragoman.cli.render.columns import echo_wrapped
from dragoman.cli.render.document import echo
from dragoman.cli.sign_ins import (
    company_credentials,
    credentials_of,
    described_state,
    sign_out_and_report,
    state_as_json,
)
from dragoman.errors import ConfigError


@click.group("auth", cls=CommandGroup)
def command() -> None:
    """Sign-ins. `dragoman mcp login` and `logout` change them."""


@command.command("status", short_help="List the servers that use OAuth, and the state of each sign-in.")
@json_option
def status(as_json: bool) -> None:
    """Lists the servers that use OAuth, and the state of each sign-in. Contacts no server."""
    from dragoman.auth.state import SignInState, sign_in_state

    configuration = load_and_report()
    found = [credentials_of(configuration, server) for server in configuration.servers.values()]
    found.append(company_credentials(configuration))

    async def look() -> list[SignInState]:
        return [await sign_in_state(each) for each in found if each is not None]

    states = asyncio.run(look())
    if as_json:
        echo({"servers": [state_as_json(state) for state in states]})
        return
    if not states:
        click.echo("No server uses OAuth.")
    width = max((len(one_line(state.server)) for state in states), default=0)
    for state in states:
        mark, colour = ("✓ ", "green") if state.status == "signed-in" else ("! ", "yellow")
        text = f"{one_line(state.server):<{width}}  {described_state(state)}"
        echo_wrapped(text, label=mark, colour=colour)
    for store in dict.fromkeys(state.store for state in states if state.store):
        echo_wrapped(f"Tokens are {store}.")


@command.command("logout", short_help="Sign out at the company's identity provider.")
@json_option
def logout(as_json: bool) -> None:
    """Signs out at the company's identity provider (`xaaIdp`): its tokens are revoked, then deleted.

    Tokens of servers stay until they expire; `dragoman mcp logout` revokes those of one server.
    """
    credentials = company_credentials(load_and_report())
    if credentials is None:
        raise ConfigError(
            "no identity provider is set", hint="`dragoman mcp logout NAME` signs out of a server."
        )
    sign_out_and_report("the company's identity provider", credentials, as_json=as_json)
