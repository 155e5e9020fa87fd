"""`dragoman mcp import`: adds the servers of another host."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, cast

import click

from dragoman.cleaning import one_line
from dragoman.cli.commands.mcp.common import (
    check_new_server,
    format_argument,
    name_option,
    shared_secret_notes,
    show_notes,
    unset_variable_notes,
    with_stored_secret,
)
from dragoman.cli.common import load_and_report
from dragoman.cli.options import json_option, scope_option
from dragoman.cli.render.document import echo
from dragoman.cli.render.servers import counted
from dragoman.cli.terminal_input import confirm, is_interactive
from dragoman.config import edits
from dragoman.config.file_reading import read_text
from dragoman.config.interchange.formats import FORMATS, Imported, Note, read
from dragoman.config.interchange.variables import WORKSPACE
from dragoman.config.load import Configuration, load
from dragoman.config.scopes import Scope, Sources
from dragoman.errors import ConfigError, NotFound


@click.command("import")
@format_argument
@click.argument("file", type=click.Path(path_type=Path), required=False)
@scope_option
@name_option
@click.option("--force", is_flag=True, help="Replace servers of the same name without asking.")
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
@json_option
def command(
    host: str,
    file: Path | None,
    scope: str | None,
    names: tuple[str, ...],
    force: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Reads the servers of another host from FILE, or from that host's user configuration, and adds them
    (scope user).

    Nothing is replaced without confirmation. Settings that cannot be converted are reported.
    """
    configuration = load_and_report()
    sources = configuration.sources
    path, imported = _read(host, file, sources)
    for name in names:
        if name not in imported.servers:
            raise NotFound(
                f"there is no server {name!r} in {path}", hint="Without --name, all servers are imported."
            )
    importer = _Importer(configuration, cast("Scope", scope or "user"), force, dry_run)
    for name, entry in imported.servers.items():
        if not names or name in names:
            importer.add_server(name, entry)
    if not dry_run:
        _disable_added(sources, imported, importer.added)
    shown = [note for note in imported.notes if not names or note.server in (None, *names)]
    shown += importer.notes
    shown += [
        Note(server=name, field=None, text=_for_all_projects(host, importer.scope))
        for name in imported.of_project
        if name in importer.added
    ]
    if as_json:
        notes = [{"server": n.server, "field": n.field, "text": n.text} for n in shown]
        echo({"file": str(path), "added": importer.added, "skipped": importer.skipped, "notes": notes})
        return
    verb = "Would add" if dry_run else "Added"
    all_of_them = counted(imported.count, "server")
    click.echo(f"{verb} {len(importer.added)} of {all_of_them} of {FORMATS[host].title}")
    click.echo(f"  from {one_line(str(path))}")
    for name in importer.added:
        off = " (disabled there, so disabled here)" if name in imported.disabled else ""
        click.echo(f"  {click.style('+', fg='green')} {one_line(name)}{off}")
    for name, why in importer.skipped.items():
        click.echo(f"  {click.style('–', fg='yellow')} {one_line(name)}: {one_line(why)}")
    show_notes(shown)


def _for_all_projects(host: str, scope: Scope) -> str:
    kept = f"{FORMATS[host].title} keeps it for this project only"
    if scope == "user":
        return f"{kept}; here it is in scope user, for all projects (-s local keeps it to this one)"
    return f"{kept}; here it is in scope {scope} of this project"


def _workspace_notes(entry: dict[str, Any], scope: Scope) -> list[str]:
    """A note for an entry that uses the workspace folder of an editor: the server will not start there."""
    if scope != "user" or "cwd" in entry or WORKSPACE not in json.dumps(entry):
        return []
    return [
        f"{WORKSPACE} is not the folder you work in: in scope user a server starts in a folder of its own. "
        'Set WORKSPACE_FOLDER, import it with --scope local, or add "cwd": "." to its entry'
    ]


def _read(host: str, file: Path | None, sources: Sources) -> tuple[Path, Imported]:
    """Reads the given file, or the first existing one of the host's usual files."""
    project = sources.project_root
    home = sources.home or Path("/")
    # Files of a project may come from an unknown author: they are read only if they are given as FILE.
    places = FORMATS[host].places(home, project, sys.platform, os.environ)
    usual = [place.path for place in places if place.level == "user"]
    for path in [file] if file else usual:
        text = read_text(path)
        if text is not None:
            return path, read(host, text, source=str(path), project=project)
    tried = ", ".join(str(path) for path in ([file] if file else usual))
    raise ConfigError(
        f"there is no configuration file of {FORMATS[host].title}: {tried}", hint="Give the FILE."
    )


class _Importer:
    def __init__(self, configuration: Configuration, scope: Scope, force: bool, dry_run: bool) -> None:
        self._configuration = configuration
        self.scope: Scope = scope
        self._force = force
        self._dry_run = dry_run
        self.added: list[str] = []
        self.skipped: dict[str, str] = {}
        self.notes: list[Note] = []
        """Notes about variables that are not set, secrets that become readable for others, and the folder of
        the workspace."""

    def add_server(self, name: str, entry: dict[str, Any]) -> None:
        path = self._configuration.sources.file_of(self.scope)
        present = edits.entry_in(path, name)
        if present == entry:
            self.skipped[name] = "it exists already"
            return
        try:
            replace = present is not None and (self._force or self._may_replace(name))
            missing = check_new_server(self._configuration, name, entry, self.scope, force=replace)
            written = entry if self._dry_run else with_stored_secret(name, entry, self.scope)
        except ConfigError as error:
            self.skipped[name] = f"{error}. {error.hint}" if error.hint else str(error)
            return
        if not self._dry_run:
            edits.put_server(self._configuration.sources, self.scope, name, written)
        self.added.append(name)
        notes = (
            *unset_variable_notes(missing),
            *shared_secret_notes(written, self.scope),
            *_workspace_notes(entry, self.scope),
        )
        self.notes += [Note(server=name, field=None, text=text) for text in notes]

    def _may_replace(self, name: str) -> bool:
        return (
            not self._dry_run
            and is_interactive()
            and confirm(f"Replace {one_line(name)}, which exists with different content?")
        )


def _disable_added(sources: Sources, imported: Imported, added: list[str]) -> None:
    configuration = load(sources)
    for name in imported.disabled:
        if name in added and name in configuration.servers:
            edits.save_disabled(configuration, configuration.servers[name])
