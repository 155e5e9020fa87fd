"""`dragoman tools`: what can be called."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Collection

import click

from dragoman.cleaning import one_line
from dragoman.cli import exit_codes
from dragoman.cli.approving import load_asking
from dragoman.cli.options import json_option, mcp_config_option, no_servers, run_with_host, sources_of
from dragoman.cli.render import json, text
from dragoman.cli.render.servers import show_problems
from dragoman.errors import ConfigError
from dragoman.host import Host
from dragoman.view import ServerView


@click.command("tools", short_help="List the tools of the configured servers.")
@mcp_config_option
@json_option
@click.option("--server", "only", metavar="NAME", help="Only this server's tools.")
def command(given: tuple[str, ...], strict: bool, as_json: bool, only: str | None) -> None:
    """Connects to every server, and lists what they offer.

    Servers that fail are named with the reason; the others are listed all the same. Exit code 3 if an
    entry could not be used, 4 if a server could not be connected.
    """
    sources = sources_of(given, strict)
    configuration = load_asking(sources)
    show_problems(configuration)
    if not configuration.servers and configuration.connectors is None:
        raise no_servers(configuration)
    if only is not None and only not in configuration.servers:
        names = one_line(", ".join(configuration.servers))
        raise click.UsageError(f"there is no server {only!r}; there are: {names}")

    async def work(host: Host) -> int:
        views = (await host.ready()).values()
        if as_json:
            json.echo(
                {
                    "servers": [json.server(view) for view in views],
                    "tools": [json.tool(t) for t in host.tools()],
                }
            )
        else:
            _show(host)
        return exit_codes.CONFIG if configuration.policy.broken else exit_code(views)

    sys.exit(run_with_host(sources, work, only=None if only is None else [only]))


def exit_code(views: Collection[ServerView]) -> int:
    """What waits for approval or is switched off is no failure; what was asked for and refused is one."""
    if any(isinstance(view.error, ConfigError) for view in views if _is_our_fault(view)):
        return exit_codes.CONFIG
    failed = any(view.status in ("failed", "needs-auth") for view in views)
    return exit_codes.NOT_CONNECTED if failed else exit_codes.OK


def _is_our_fault(view: ServerView) -> bool:
    return view.status == "failed" or view.scope == "dynamic"


def _show(host: Host) -> None:
    width = shutil.get_terminal_size().columns
    tools = host.tools()
    for view in host.servers.values():
        if view.error is not None:
            text.show_error(view.error)
        else:
            text.show_server(view)
            text.show_tools([tool for tool in tools if tool.server == view.name], width)
