"""`dragoman mcp login`, `logout` and `whoami`: the sign-in of one server."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman.cleaning import one_line
from dragoman.cli import exit_codes
from dragoman.cli.commands.completion import complete_server
from dragoman.cli.common import load_with_servers, run_with_host
from dragoman.cli.options import json_option, mcp_config_option
from dragoman.cli.render.columns import echo_wrapped
from dragoman.cli.render.document import echo
from dragoman.cli.render.progress import ConnectProgress
from dragoman.cli.render.servers import counted
from dragoman.cli.sign_ins import (
    described_state,
    gateway_accounts,
    gateway_option,
    identity_option,
    required_credentials,
    run_with_accounts,
    sign_out_and_report,
    state_as_json,
)
from dragoman.errors import ConfigError, SignInFailed
from dragoman.interaction import SIGN_IN_SECONDS
from dragoman.names import shell_quoted

if TYPE_CHECKING:
    from dragoman.auth.state import SignInState
    from dragoman.host import Host
    from dragoman.servers.status import ServerStatus


@click.command("login")
@click.argument("name", shell_complete=complete_server)
@click.option("--no-browser", is_flag=True, help="Show the page instead of opening it.")
@click.option("--device", is_flag=True, help="Sign in with a code that you enter on another device.")
@click.option(
    "--timeout",
    type=click.FloatRange(1),
    default=SIGN_IN_SECONDS,
    show_default=True,
    help="Time limit in seconds.",
)
@identity_option
@gateway_option
@mcp_config_option
@json_option
def command(
    name: str,
    no_browser: bool,
    device: bool,
    timeout: float,
    identity: str | None,
    settings_file: Path | None,
    as_json: bool,
) -> None:
    """Signs in to the server NAME with OAuth, in the browser, and stores the tokens."""
    from dragoman.cli.sign_in_screen import TerminalSignIn

    loaded = load_with_servers(name)
    accounts = gateway_accounts(settings_file, name)
    screen = TerminalSignIn(name, uses_browser=not no_browser)

    async def work(host: Host) -> tuple[ServerStatus, SignInState]:
        with ConnectProgress(host):
            before = (await host.ready(only=[name]))[name]
        if before.status == "connected" and (await host.sign_in_state(name)).status == "signed-out":
            raise ConfigError(
                f"server {name!r} does not require a sign-in", hint="It is connected without one."
            )
        view = await host.sign_in(name, screen, timeout=timeout, on_device=device, identity=identity)
        return view, await host.sign_in_state(name, identity=identity)

    close = None if accounts is None else accounts.close
    view, state = run_with_host(loaded.sources, work, at_end=close, only=[name], accounts=accounts)
    if as_json:
        facts = {"server": name, "status": view.status, "toolCount": view.tool_count}
        echo({**facts, "issuer": state.issuer, "store": state.store})
    else:
        echo_wrapped(
            f"Signed in to {one_line(name)} at {one_line(state.issuer or '')}. The tokens are {state.store}."
        )
        if view.status == "connected":
            click.echo(f"Connected, {counted(view.tool_count, 'tool')}.")
        if identity is not None:
            echo_wrapped(
                f"A server uses this account if its entry has oauth.identity: {one_line(identity)!r}."
            )
    if identity is None and view.status != "connected":
        raise view.error or SignInFailed(name, view.reason or "the server does not accept the new token")


@click.command("logout")
@click.argument("name", shell_complete=complete_server)
@identity_option
@gateway_option
@json_option
def logout(name: str, identity: str | None, settings_file: Path | None, as_json: bool) -> None:
    """Signs out of the server NAME: its tokens are revoked at the authorization server, then deleted here."""
    credentials, accounts = required_credentials(name, identity, settings_file)
    sign_out_and_report(name, credentials, accounts, as_json=as_json)


@click.command("whoami")
@click.argument("name", shell_complete=complete_server)
@identity_option
@gateway_option
@json_option
def whoami(name: str, identity: str | None, settings_file: Path | None, as_json: bool) -> None:
    """Shows the sign-in of the server NAME: issuer, client, scopes, and where the tokens are."""
    from dragoman.auth.state import sign_in_state

    credentials, accounts = required_credentials(name, identity, settings_file)
    state = run_with_accounts(sign_in_state(credentials), accounts)
    if as_json:
        echo(state_as_json(state))
    else:
        echo_wrapped(f"{one_line(name)}: {described_state(state)}")
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
