"""`dragoman tools show`: one tool whole."""

from __future__ import annotations

import difflib
import sys

import click

from dragoman.catalog.tools import ServerTool
from dragoman.cli import exit_codes
from dragoman.cli.commands.call import raise_if_failed, servers_of
from dragoman.cli.opening import opened, settled
from dragoman.cli.options import json_option, mcp_config_option, run_with_host
from dragoman.cli.render import json, tools
from dragoman.errors import UnknownTool
from dragoman.host import Host


@click.command("show", short_help="Show one tool whole.")
@click.argument("tool")
@mcp_config_option
@json_option
def command(tool: str, given: tuple[str, ...], strict: bool, as_json: bool) -> None:
    """Shows TOOL: description, parameters, result, risk, and what it costs in a model's context.

    TOOL is a name as `dragoman tools` lists it, or a server's own name for it if only one server has it.
    """
    sources, configuration = opened(given, strict)
    only = servers_of(tool, configuration) if tool.startswith("mcp__") else None

    async def work(host: Host) -> int:
        await settled(host, quiet=as_json)
        found = _find(host, tool)
        if as_json:
            json.echo(
                {**json.tool(found, cost=True), "outputSchema": found.output_schema, "digest": found.digest}
            )
        else:
            tools.show_tool(found)
        return exit_codes.OK

    sys.exit(run_with_host(sources, work, only=only))


def _find(host: Host, name: str) -> ServerTool:
    known = host.tools(include_app_tools=True)
    own = [tool for tool in known if tool.wire_name == name]
    found = [tool for tool in known if tool.name == name] or own
    if len(found) == 1:
        return found[0]
    if found:
        raise click.UsageError(f"several servers have it: {', '.join(tool.name for tool in found)}")
    raise_if_failed(host)
    names = {str(spelled): tool.name for tool in known for spelled in (tool.wire_name, tool.name)}
    near = difflib.get_close_matches(name, names, n=3)
    raise UnknownTool(name, near=tuple(dict.fromkeys(names[each] for each in near)))
