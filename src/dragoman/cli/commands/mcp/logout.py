"""`dragoman mcp logout`: revokes and deletes the tokens of a server."""

from __future__ import annotations

from pathlib import Path

import click

from dragoman.cli.commands.completion import complete_server
from dragoman.cli.options import json_option
from dragoman.cli.sign_ins import gateway_option, identity_option, required_credentials, sign_out_and_report


@click.command("logout")
@click.argument("name", shell_complete=complete_server)
@identity_option
@gateway_option
@json_option
def command(name: str, identity: str | None, settings_file: Path | None, as_json: bool) -> None:
    """Signs out of the server NAME: its tokens are revoked at the authorization server, then deleted here."""
    credentials, accounts = required_credentials(name, identity, settings_file)
    sign_out_and_report(name, credentials, accounts, as_json=as_json)
