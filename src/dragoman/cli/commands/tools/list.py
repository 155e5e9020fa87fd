"""`dragoman tools [PATTERN]`: what can be called."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Collection
from pathlib import Path

import click

from dragoman.catalog.tools import ServerTool
from dragoman.cli import exit_codes
from dragoman.cli.opening import exit_code, opened, settled
from dragoman.cli.options import frozen_option, json_option, mcp_config_option, run_with_host, server_option
from dragoman.cli.render import json, text, tools
from dragoman.host import Host
from dragoman.view import ServerView


@click.command("list", short_help="List the tools, or those that PATTERN fits.")
@click.argument("pattern", required=False)
@mcp_config_option
@json_option
@server_option
@click.option("--schema", is_flag=True, help="Show the input schemas too.")
@click.option("--cost", is_flag=True, help="Show about how many tokens each takes in a model's context.")
@frozen_option
def command(
    pattern: str | None,
    given: tuple[str, ...],
    strict: bool,
    as_json: bool,
    server: str | None,
    schema: bool,
    cost: bool,
    frozen: Path | None,
) -> None:
    """Connects to every server, and lists what they offer.

    PATTERN is a part of a tool's name, or a whole one with * and ?. Servers that fail are named with the
    reason; the others are listed all the same. Exit code 3 if an entry could not be used, 4 if a server
    could not be connected, 5 if no tool fits PATTERN.
    """
    sources, configuration = opened(given, strict, server)

    async def work(host: Host) -> int:
        views = await settled(host, quiet=as_json)
        found = [tool for tool in host.tools() if pattern is None or fits(tool, pattern)]
        if as_json:
            json.echo(
                {
                    "servers": [json.server(view) for view in views],
                    "tools": [json.tool(tool, cost=cost) for tool in found],
                }
            )
        else:
            _show(views, found, schema=schema, cost=cost, are_some=pattern is not None)
        nothing = exit_codes.UNKNOWN_TOOL if pattern is not None and not found else exit_codes.OK
        return exit_code(configuration, views) or nothing

    sys.exit(run_with_host(sources, work, only=None if server is None else [server], frozen=frozen))


def fits(tool: ServerTool, pattern: str) -> bool:
    """By the name models use or the server's own; a part is enough where there is no wildcard."""
    if not set("*?[") & set(pattern):
        pattern = f"*{pattern}*"
    return any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for name in (tool.name, tool.wire_name))


def _show(
    views: Collection[ServerView], found: list[ServerTool], *, schema: bool, cost: bool, are_some: bool
) -> None:
    for view in views:
        if view.error is not None:
            text.show_error(view.error)
            continue
        own = [tool for tool in found if tool.server == view.name]
        if are_some and view.status == "connected" and not own:
            continue
        text.show_server(view)
        tools.show_table(own, schema=schema, cost=cost)
    if found:
        tools.show_legend(found, cost=cost)
    elif are_some:
        click.echo("no tool fits; `dragoman tools search WORDS` looks at descriptions too", err=True)
