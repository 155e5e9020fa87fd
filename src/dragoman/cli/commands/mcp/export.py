"""`dragoman mcp export`: servers into another host's file."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, cast

import click
from msgspec import structs

from dragoman.cleaning import one_line
from dragoman.cli.exchange import format_argument, name_option, show_notes
from dragoman.cli.finding import find
from dragoman.cli.looking import look
from dragoman.cli.options import is_watched, json_option
from dragoman.cli.questions import confirmed
from dragoman.cli.render.document import echo
from dragoman.cli.render.servers import counted
from dragoman.config.interchange.formats import FORMATS, Exported, write
from dragoman.config.load import Configuration
from dragoman.config.masking import masked_entry
from dragoman.config.reading import read_text
from dragoman.config.scopes import Sources

_CHOSEN = ("user", "project", "local")
"""What belongs to the person. Plugins, connectors and the administrator serve others in their own ways."""


@click.command("export", short_help="Write servers into another host's file.")
@format_argument
@click.argument("file", type=click.Path(path_type=Path), required=False)
@name_option
@click.option("--force", is_flag=True, help="Replace servers of the same name without asking.")
@click.option("--dry-run", is_flag=True, help="Print what would be written, secrets covered.")
@json_option
def command(
    host: str, file: Path | None, names: tuple[str, ...], force: bool, dry_run: bool, as_json: bool
) -> None:
    """Writes your servers into FILE, or into the file HOST keeps for its user.

    Everything else in that file stays: other keys, order, comments. A server of the same name is replaced
    only after a yes. Variables stay variables. What HOST cannot express is told.
    """
    sources = Sources.here()
    path = file or _usual_place(host, sources)
    servers = _servers(look(sources), names)
    text = read_text(path)
    exported = write(host, text, servers, source=str(path), replace=servers if force else ())
    if replaced := _asked(exported, dry_run):
        exported = write(host, text, servers, source=str(path), replace=replaced)
    if dry_run:
        exported = structs.replace(exported, text=_preview(host, path, servers, exported.written))
    else:
        exported = _write(host, path, servers, (*exported.written, *exported.unchanged))
    _report(host, path, exported, as_json, dry_run)


def _preview(host: str, path: Path, servers: Mapping[str, Mapping[str, Any]], names: Collection[str]) -> str:
    """Only what would be added, and with secrets covered: it is shown to whoever looks."""
    shown = {name: masked_entry(servers[name]) for name in names}
    return write(host, None, shown, source=str(path)).text


def _usual_place(host: str, sources: Sources) -> Path:
    home = sources.home or Path("/")
    usual = FORMATS[host].places(home, sources.project_root, sys.platform, os.environ)
    users = [place.path for place in usual if place.level == "user"]
    return next((path for path in users if path.exists()), users[0])


def _servers(configuration: Configuration, names: tuple[str, ...]) -> dict[str, Mapping[str, Any]]:
    chosen = [find(configuration, name) for name in names] or [
        server
        for server in configuration.servers.values()
        if server.scope in _CHOSEN and server.standing in ("ready", "broken", "disabled")
    ]
    written = [server for server in chosen if isinstance(server.candidate.given, Mapping)]
    return {server.name: cast("Mapping[str, Any]", server.candidate.given) for server in written}


def _asked(exported: Exported, dry_run: bool) -> list[str]:
    """Which of the servers that are there already the person wants replaced."""
    if dry_run or not is_watched():
        return []
    question = "Replace {}, which is there with other content?"
    return [name for name in exported.conflicts if confirmed(question.format(one_line(name)))]


def _write(
    host: str, path: Path, servers: Mapping[str, Mapping[str, Any]], replace: Collection[str]
) -> Exported:
    from dragoman.config.writer import rewrite

    done: list[Exported] = []

    def change(text: str) -> str:
        done[:] = [write(host, text or None, servers, source=str(path), replace=replace)]
        return done[0].text

    rewrite(path, change)
    return done[0]


def _report(host: str, path: Path, exported: Exported, as_json: bool, dry_run: bool) -> None:
    if as_json:
        echo(
            {
                "file": str(path),
                "written": exported.written,
                "unchanged": exported.unchanged,
                "conflicts": exported.conflicts,
                "notes": [{"server": n.server, "field": n.field, "text": n.text} for n in exported.notes],
                **({"text": exported.text} if dry_run else {}),
            }
        )
        return
    if dry_run:
        click.echo(exported.text, nl=False)
    verb = "Would write" if dry_run else "Wrote"
    what = f"{counted(len(exported.written), 'server')} for {FORMATS[host].title}"
    click.echo(f"{verb} {what} to {one_line(str(path))}", err=dry_run)
    for name in exported.conflicts:
        mark = click.style("–", fg="yellow")
        click.echo(f"  {mark} {one_line(name)}: there with other content; --force replaces it", err=dry_run)
    show_notes(exported.notes)
