"""`dragoman mcp remove`: removes a server from a configuration file."""

from __future__ import annotations

import click

from dragoman.cleaning import one_line
from dragoman.cli.commands.completion import complete_server
from dragoman.cli.common import load_and_report
from dragoman.cli.options import json_option, scope_option
from dragoman.cli.render.document import echo
from dragoman.config.edits import places_of, remove_server
from dragoman.errors import ConfigError, NotFound


@click.command("remove", short_help="Remove a server from a configuration file.")
@click.argument("name", shell_complete=complete_server)
@scope_option
@json_option
def command(name: str, scope: str | None, as_json: bool) -> None:
    """Removes the server NAME from the file that defines it."""
    sources = load_and_report().sources
    places = [place for place in places_of(sources, name) if scope in (None, place[0])]
    if not places:
        where = f" in scope {scope}" if scope else " in your files"
        raise NotFound(
            f"there is no server {name!r}{where}", hint="`dragoman mcp list` shows the scope of each server."
        )
    if len({found for found, _ in places}) > 1:
        scopes = ", ".join(dict.fromkeys(found for found, _ in places))
        raise ConfigError(
            f"{name!r} is defined in several scopes: {scopes}", hint="Choose one with -s SCOPE."
        )
    found, path = places[0]
    remove_server(sources, found, path, name)
    if as_json:
        echo({"removed": name, "scope": found, "file": str(path)})
    else:
        click.echo(f"Removed {one_line(name)} from {found} ({one_line(str(path))})")
