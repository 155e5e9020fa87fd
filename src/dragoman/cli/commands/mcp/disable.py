"""`dragoman mcp disable`: disables servers and saves that."""

from __future__ import annotations

import click

from dragoman.cleaning import one_line
from dragoman.cli.commands.completion import complete_server
from dragoman.cli.common import find_server, load_and_report
from dragoman.cli.options import json_option
from dragoman.cli.render.document import echo
from dragoman.config.edits import save_disabled


@click.command("disable")
@click.argument("names", nargs=-1, required=True, metavar="NAME…|all", shell_complete=complete_server)
@json_option
def command(names: tuple[str, ...], as_json: bool) -> None:
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
