"""`dragoman mcp get`: shows one server with everything known about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dragoman.cleaning import one_line
from dragoman.cli.commands.completion import complete_server
from dragoman.cli.common import find_server, load_and_report, run_with_host
from dragoman.cli.options import json_option, mcp_config_option, sources_of
from dragoman.cli.render import servers
from dragoman.cli.render.document import echo
from dragoman.config.merge import ConfiguredServer

if TYPE_CHECKING:
    from dragoman.host import Host
    from dragoman.servers.status import ServerStatus


@click.command("get")
@click.argument("name", shell_complete=complete_server)
@click.option("--no-health", is_flag=True, help="Do not connect to it.")
@mcp_config_option
@json_option
def command(name: str, no_health: bool, as_json: bool) -> None:
    """Shows the server NAME: its source, its entry as written (secrets masked), and its status."""
    sources = sources_of()
    configuration = load_and_report(sources)
    server = find_server(configuration, name)
    view = None
    if not no_health and server.eligibility == "ready":
        view = run_with_host(sources, lambda host: _check(host, name), only=[name])
    if as_json:
        echo(servers.as_json(server, view))
    else:
        _show(server, view)
        servers.show_warnings([server])


async def _check(host: Host, name: str) -> ServerStatus:
    return (await host.ready())[name]


def _show(server: ConfiguredServer, view: ServerStatus | None) -> None:
    servers.show_list([server], {server.name: view} if view else {})
    click.echo(f"  file: {one_line(server.source)}")
    for field, value in servers.masked(server).items():
        click.echo(f"  {one_line(field)}: {servers.inline(value)}")
    for other in server.replaced:
        click.echo(f"  replaces the entry from {one_line(other.origin)}")
    servers.show_reasons([server], {server.name: view} if view else {})
