"""`dragoman mcp logout`: revokes and forgets the tokens of a server."""

from __future__ import annotations

from pathlib import Path

import click

from dragoman.cli.commands.completion import complete_server
from dragoman.cli.common import find_server, load_and_report
from dragoman.cli.options import json_option
from dragoman.cli.sign_ins import (
    gateway_accounts,
    gateway_option,
    identity_option,
    required_credentials,
    sign_out_and_report,
)


@click.command("logout")
@click.argument("name", shell_complete=complete_server)
@identity_option
@gateway_option
@json_option
def command(name: str, identity: str | None, settings_file: Path | None, as_json: bool) -> None:
    """Signs out of the server NAME: its tokens are revoked at the authorization server, then forgotten."""
    configuration = load_and_report()
    server = find_server(configuration, name)
    accounts = gateway_accounts(settings_file, name)
    credentials = required_credentials(configuration, server, identity, accounts)
    sign_out_and_report(name, credentials, accounts, as_json=as_json)
