"""`dragoman mcp reconnect`: connects to a server now."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from dragoman.cli.commands.completion import complete_server
from dragoman.cli.common import find_server, list_exit_code, load_with_servers, run_with_host
from dragoman.cli.options import json_option, mcp_config_option
from dragoman.cli.render import servers
from dragoman.cli.render.document import echo
from dragoman.cli.render.progress import ConnectProgress
from dragoman.cli.sign_ins import credentials_of

if TYPE_CHECKING:
    from dragoman.host import Host
    from dragoman.servers.status import ServerStatus


@click.command("reconnect")
@click.argument("name", shell_complete=complete_server)
@mcp_config_option
@json_option
def command(name: str, as_json: bool) -> None:
    """Connects to the server NAME now, even if it required a sign-in a short while ago."""
    sources, configuration, _ = load_with_servers(name)
    server = find_server(configuration, name)
    if (credentials := credentials_of(configuration, server)) is not None:
        credentials.needs_auth.forget()

    async def work(host: Host) -> ServerStatus:
        with ConnectProgress(host):
            return (await host.ready(only=[name]))[name]

    view = run_with_host(sources, work, only=[name])
    if as_json:
        echo(servers.as_json(server, view))
    else:
        servers.show_list([server], {name: view})
        servers.show_reasons([server], {name: view})
    sys.exit(list_exit_code(configuration, [view], name))
