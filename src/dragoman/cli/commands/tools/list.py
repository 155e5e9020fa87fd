"""`dragoman tools [PATTERN]`: lists tools."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Collection
from pathlib import Path

import click

from dragoman.catalog.tools import ServerTool
from dragoman.cli import exit_codes
from dragoman.cli.commands.completion import complete_server, remember_tools
from dragoman.cli.common import (
    list_exit_code,
    load_with_servers,
    run_with_host,
    show_unconnected,
    wait_for_servers,
)
from dragoman.cli.options import (
    frozen_option,
    full_option,
    json_option,
    mcp_config_option,
    server_option,
    take_url,
)
from dragoman.cli.render import json, text, tools
from dragoman.host import Host
from dragoman.servers.status import ServerStatus


@click.command("list")
@click.argument("words", nargs=-1, metavar="[SERVER|URL] [PATTERN]", shell_complete=complete_server)
@mcp_config_option
@json_option
@server_option
@click.option("--schema", is_flag=True, help="Show the input schemas too.")
@click.option("--cost", is_flag=True, help="Show about how many tokens each takes in a model's context.")
@full_option
@frozen_option
def command(
    words: tuple[str, ...],
    as_json: bool,
    server: str | None,
    schema: bool,
    cost: bool,
    full: bool,
    frozen: Path | None,
) -> None:
    """Connects to every server, or only to SERVER, and lists the tools with their parameters.

    PATTERN is a part of a tool's name, or a whole name with * and ?. SERVER is a configured name; a URL, or a
    command given with --stdio, needs no configuration. Servers that fail are named with the reason; the
    others are listed all the same.
    """
    words = take_url(words)
    sources, configuration, server = load_with_servers(server)
    if server is None and words and words[0] in configuration.servers:
        server, words = words[0], words[1:]
    if len(words) > 1:
        raise click.UsageError(f"there is no server {words[0]!r}; expected one PATTERN")
    pattern = words[0] if words else None

    async def work(host: Host) -> int:
        views = await wait_for_servers(host, silent=as_json)
        remember_tools(host)
        found = [tool for tool in host.tools(include_denied=True) if pattern is None or fits(tool, pattern)]
        if as_json:
            json.echo(
                {
                    "servers": [json.server(view) for view in views],
                    "tools": [json.tool(tool, cost=cost) for tool in found],
                }
            )
        else:
            _show(views, found, schema=schema, cost=cost, full=full, are_some=pattern is not None)
        if pattern is not None and found:
            return exit_codes.OK  # the other servers were not connected
        nothing = exit_codes.NOT_FOUND if pattern is not None else exit_codes.OK
        return list_exit_code(configuration, views, server) or nothing

    sys.exit(run_with_host(sources, work, only=None if server is None else [server], tool_lock=frozen))


def fits(tool: ServerTool, pattern: str) -> bool:
    """Whether the qualified name or the wire name fits; without a wildcard, a part of the name is enough."""
    if not set("*?[") & set(pattern):
        pattern = f"*{pattern}*"
    return any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for name in (tool.name, tool.wire_name))


def _show(
    views: Collection[ServerStatus],
    found: list[ServerTool],
    *,
    schema: bool,
    cost: bool,
    full: bool,
    are_some: bool,
) -> None:
    absent = [view for view in views if view.error is not None]
    for view in views:
        if view in absent:
            continue
        offered = [tool for tool in found if tool.server == view.name]
        if are_some and view.status == "connected" and not offered:
            continue
        text.show_server(view)
        tools.show_table(offered, schema=schema, cost=cost, full=full)
    if found:
        tools.show_legend(found, cost=cost)
    elif are_some:
        click.echo("No tool matches; `dragoman tools search WORDS` also searches descriptions.", err=True)
    show_unconnected(absent)
