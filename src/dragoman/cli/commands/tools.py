"""`dragoman tools`: what can be called."""

from __future__ import annotations

import shutil
import sys

import click

from dragoman.cleaning import one_line
from dragoman.cli import exit_codes
from dragoman.cli.options import json_option, mcp_config_option, read_servers, run_with_host
from dragoman.cli.render import json, text
from dragoman.errors import ConfigError
from dragoman.host import Host


@click.command("tools", short_help="List the tools of the configured servers.")
@mcp_config_option
@json_option
@click.option("--server", "only", metavar="NAME", help="Only this server's tools.")
def command(sources: tuple[str, ...], as_json: bool, only: str | None) -> None:
    """Connects to every server, and lists what they offer.

    Servers that fail are named with the reason; the others are listed all the same. Exit code 3 if an
    entry could not be used, 4 if a server could not be connected.
    """
    servers = read_servers(sources)
    if only is not None:
        if only not in servers:
            names = one_line(", ".join(servers))
            raise click.UsageError(f"there is no server {only!r}; there are: {names}")
        servers = {only: servers[only]}

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
        if any(isinstance(view.error, ConfigError) for view in views):
            return exit_codes.CONFIG
        connected = all(view.status == "connected" for view in views)
        return exit_codes.OK if connected else exit_codes.NOT_CONNECTED

    sys.exit(run_with_host(servers, work))


def _show(host: Host) -> None:
    width = shutil.get_terminal_size().columns
    tools = host.tools()
    for view in host.servers.values():
        if view.error is not None:
            text.show_error(view.error)
        else:
            text.show_server(view)
            text.show_tools([tool for tool in tools if tool.server == view.name], width)
