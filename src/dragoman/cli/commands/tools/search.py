"""`dragoman tools search`: finds tools by what they do."""

from __future__ import annotations

import sys

import click

from dragoman.catalog.search import Index
from dragoman.catalog.tools import ServerTool
from dragoman.cli import exit_codes
from dragoman.cli.common import (
    list_exit_code,
    load_with_servers,
    run_with_host,
    show_unconnected,
    wait_for_servers,
)
from dragoman.cli.options import full_option, json_option, mcp_config_option, server_option
from dragoman.cli.render import json, tools
from dragoman.host import Host


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@mcp_config_option
@json_option
@server_option
@full_option
@click.option("-n", "--limit", type=click.IntRange(1, 100), default=5, show_default=True, help="How many.")
def command(
    words: tuple[str, ...],
    as_json: bool,
    server: str | None,
    limit: int,
    full: bool,
) -> None:
    """Ranks tools as an agent's `tool_search` does: best first; small typing errors are tolerated.

    Servers that fail are named with the reason; the others are searched all the same.
    """
    loaded = load_with_servers(server)

    async def work(host: Host) -> int:
        views = await wait_for_servers(host, silent=as_json)
        found = [
            tool
            for tool in Index(host.tools(include_denied=True)).search(" ".join(words), limit=limit)
            if isinstance(tool, ServerTool)
        ]
        if as_json:
            json.echo(
                {
                    "servers": [json.server(view) for view in views],
                    "tools": [json.tool(tool) for tool in found],
                }
            )
        else:
            tools.show_table(found, full=full)
            if not found:
                click.echo("Nothing found; `dragoman tools` lists everything.", err=True)
            show_unconnected(views)
        return (
            exit_codes.OK
            if found
            else list_exit_code(loaded.configuration, views, loaded.server) or exit_codes.NOT_FOUND
        )

    sys.exit(run_with_host(loaded.sources, work, only=loaded.only))
