"""`dragoman mcp enable`: servers on again."""

from __future__ import annotations

import click

from dragoman.cleaning import one_line
from dragoman.cli.finding import find
from dragoman.cli.options import json_option
from dragoman.cli.render.document import echo
from dragoman.config.edits import switch_on
from dragoman.config.load import load
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError, PolicyRefused


@click.command("enable", short_help="Switch servers on again.")
@click.argument("names", nargs=-1, required=True, metavar="NAME…|all")
@json_option
def command(names: tuple[str, ...], as_json: bool) -> None:
    """Switches servers on that were switched off."""
    configuration = load(Sources.here())
    if names == ("all",):
        names = tuple(name for name, server in configuration.servers.items() if server.standing == "disabled")
    results: list[dict[str, str]] = []
    for name in names:
        server = find(configuration, name)
        if server.standing == "refused":
            raise PolicyRefused(name, server.reason or "")
        files = switch_on(configuration, name)
        if not files and server.standing == "disabled":
            raise ConfigError(
                f"{name!r} is {server.reason}", hint="That file is not yours to change from here."
            )
        now = load(Sources.here()).servers[name].standing
        results.append({"name": name, "standing": now})
    if as_json:
        echo({"servers": results})
        return
    for result in results:
        more = f"; it waits for approval: dragoman mcp approve {result['name']}"
        click.echo(f"{one_line(result['name'])} is on{more if result['standing'] == 'pending' else ''}")
