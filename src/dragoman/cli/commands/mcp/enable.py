"""`dragoman mcp enable` and `disable`: enable and disable servers, and save the choice."""

from __future__ import annotations

import click

from dragoman.cleaning import one_line
from dragoman.cli.commands.completion import complete_server
from dragoman.cli.common import find_server, load_and_report
from dragoman.cli.options import json_option
from dragoman.cli.render.document import echo
from dragoman.config.edits import save_disabled, save_enabled
from dragoman.config.load import Configuration, load
from dragoman.config.merge import ConfiguredServer
from dragoman.errors import ConfigError, PolicyRefused
from dragoman.names import shell_quoted


@click.command("enable")
@click.argument("names", nargs=-1, required=True, metavar="NAME…|all", shell_complete=complete_server)
@json_option
def command(names: tuple[str, ...], as_json: bool) -> None:
    """Enables servers that were disabled."""
    configuration = load_and_report()
    if names == ("all",):
        names = tuple(
            name for name, server in configuration.servers.items() if server.eligibility == "disabled"
        )
    found = [find_server(configuration, name) for name in names]
    for server in found:
        if server.eligibility == "refused":
            raise PolicyRefused(server.name, server.reason or "")
    results = [{"name": server.name, "eligibility": _enable(configuration, server)} for server in found]
    if as_json:
        echo({"servers": results})
        return
    for result in results:
        name = one_line(result["name"])
        click.echo(f"Enabled {name}{_what_else(result)}")


def _what_else(result: dict[str, str]) -> str:
    match result["eligibility"]:
        case "pending":
            return f"; it needs approval: dragoman mcp approve {one_line(shell_quoted(result['name']))}"
        case "duplicate":
            return "; it is the same server as another entry: see `dragoman mcp list`"
        case _:
            return ""


def _enable(configuration: Configuration, server: ConfiguredServer) -> str:
    """Enables the server. Returns its eligibility afterwards."""
    files = save_enabled(configuration, server.name)
    if not files and server.eligibility == "disabled":
        raise ConfigError(f"{server.name!r} is {server.reason}", hint="This command cannot change that file.")
    now = load(configuration.sources).servers.get(server.name)
    return now.eligibility if now is not None else "duplicate"


@click.command("disable")
@click.argument("names", nargs=-1, required=True, metavar="NAME…|all", shell_complete=complete_server)
@json_option
def disable(names: tuple[str, ...], as_json: bool) -> None:
    """Disables servers. Servers of a project are disabled in this project only."""
    configuration = load_and_report()
    wanted = tuple(configuration.servers) if names == ("all",) else names
    found = [find_server(configuration, name) for name in wanted]
    files = [save_disabled(configuration, server) for server in found]
    if as_json:
        echo({"servers": [{"name": s.name, "file": str(f)} for s, f in zip(found, files)]})
        return
    for server, file in zip(found, files):
        click.echo(f"Disabled {one_line(server.name)} ({one_line(str(file))})")
