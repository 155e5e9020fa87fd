"""`dragoman mcp whoami`: shows the sign-in of a server."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from dragoman.cleaning import one_line
from dragoman.cli import exit_codes
from dragoman.cli.commands.completion import complete_server
from dragoman.cli.options import json_option
from dragoman.cli.render.columns import echo_wrapped
from dragoman.cli.render.document import echo
from dragoman.cli.sign_ins import (
    gateway_option,
    identity_option,
    in_words,
    required_credentials,
    run_with_accounts,
    state_as_json,
)
from dragoman.names import shell_quoted


@click.command("whoami")
@click.argument("name", shell_complete=complete_server)
@identity_option
@gateway_option
@json_option
def command(name: str, identity: str | None, settings_file: Path | None, as_json: bool) -> None:
    """Shows the sign-in of the server NAME: issuer, client, scopes, and where the tokens are."""
    from dragoman.auth.state import sign_in_state

    credentials, accounts = required_credentials(name, identity, settings_file)
    state = run_with_accounts(sign_in_state(credentials), accounts)
    if as_json:
        echo(state_as_json(state))
    else:
        echo_wrapped(f"{one_line(name)}: {in_words(state)}")
        rows = {
            "resource": state.resource,
            "client id": state.client_id,
            "scopes": " ".join(state.scopes) or None,
            "tokens": state.store or None,
        }
        for label, value in rows.items():
            if value is not None:
                echo_wrapped(f"  {label}: {one_line(value, 300)}")
        if state.status != "signed-in" and state.problem is None:
            option = "" if identity is None else f"--identity {shlex.quote(identity)} "
            option += "" if settings_file is None else f"--gateway {shlex.quote(str(settings_file))} "
            hint = one_line(f"Run `dragoman mcp login {option}{shell_quoted(name)}`.")
            echo_wrapped(hint, label="  hint: ", colour="cyan", err=True)
    sys.exit(exit_codes.OK if state.status == "signed-in" else exit_codes.NOT_CONNECTED)
