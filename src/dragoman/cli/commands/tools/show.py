"""`dragoman tools show`: shows one tool in full."""

from __future__ import annotations

import sys

import click

from dragoman.cli import exit_codes
from dragoman.cli.commands.completion import complete_tool
from dragoman.cli.common import (
    find_tool,
    load_with_servers,
    raise_if_not_connected,
    run_with_host,
    servers_with_tool,
    show_unconnected,
    unknown_tool,
    wait_for_servers,
)
from dragoman.cli.options import json_option, mcp_config_option, take_url
from dragoman.cli.render import json, tools
from dragoman.host import Host


@click.command("show")
@click.argument("words", nargs=-1, required=True, metavar="[SERVER|URL] TOOL", shell_complete=complete_tool)
@mcp_config_option
@json_option
def command(words: tuple[str, ...], as_json: bool) -> None:
    """Shows TOOL: description, parameters, result, risk, and its size in tokens.

    TOOL is a name as `dragoman tools` lists it, or a server's own name for it: if only one server has it, or
    after the name of its SERVER.
    """
    words = take_url(words)
    if not 1 <= len(words) <= 2:
        raise click.UsageError("expected the name of one tool")
    *servers, tool = words
    loaded = load_with_servers(next(iter(servers), None))
    only = loaded.only or servers_with_tool(tool, loaded.configuration)

    async def work(host: Host) -> int:
        views = await wait_for_servers(host, silent=as_json)
        found = find_tool(host, tool)
        if found is None:
            if only is not None:
                raise_if_not_connected(host)
            show_unconnected(views)
            raise unknown_tool(host, tool)
        if as_json:
            json.echo(
                {**json.tool(found, cost=True), "outputSchema": found.output_schema, "digest": found.digest}
            )
        else:
            tools.show_tool(found)
        return exit_codes.OK

    sys.exit(run_with_host(loaded.sources, work, only=only))
