"""`dragoman mcp export`: writes servers into another host's file."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, cast

import click
from msgspec import structs

from dragoman.cleaning import one_line, visible
from dragoman.cli.commands.mcp.common import format_argument, name_option, show_notes
from dragoman.cli.common import find_server, load_and_report
from dragoman.cli.options import json_option
from dragoman.cli.render.document import echo
from dragoman.cli.render.servers import counted
from dragoman.cli.terminal_input import confirm, is_interactive
from dragoman.config.file_reading import read_text
from dragoman.config.interchange.formats import FORMATS, Exported, write
from dragoman.config.load import Configuration
from dragoman.config.masking import masked_entry
from dragoman.config.merge import ConfiguredServer
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError
from dragoman.names import shell_quoted

_EXPORTED_SCOPES = ("user", "project", "local")
"""The scopes that are exported by default: entries of the person. Plugins, connectors and the administrator
provide their servers to other hosts themselves."""


@click.command("export")
@format_argument
@click.argument("file", type=click.Path(path_type=Path), required=False)
@name_option
@click.option("--force", is_flag=True, help="Replace servers of the same name without asking.")
@click.option("--dry-run", is_flag=True, help="Print what would be written, secrets masked.")
@json_option
def command(
    host: str, file: Path | None, names: tuple[str, ...], force: bool, dry_run: bool, as_json: bool
) -> None:
    """Writes your servers for another host into FILE, or into that host's user configuration.

    Other keys, their order and comments are kept. A server of the same name is replaced only after
    confirmation. Variable references are kept. Settings that the host does not support are reported.
    """
    sources = Sources.here()
    path = file or _usual_place(host, sources)
    chosen = _Selection(load_and_report(sources), names)
    text = read_text(path)
    exported = chosen.write(host, text, path, chosen.servers if force else ())
    if replaced := _confirmed_replacements(exported, dry_run):
        exported = chosen.write(host, text, path, replaced)
    if dry_run:
        exported = structs.replace(exported, text=chosen.preview(host, path, exported.written))
    else:
        exported = _write(host, path, chosen, (*exported.written, *exported.unchanged))
    _report(host, path, exported, chosen.left_out, as_json, dry_run)


def _usual_place(host: str, sources: Sources) -> Path:
    home = sources.home or Path("/")
    usual = FORMATS[host].places(home, sources.project_root, sys.platform, os.environ)
    users = [place.path for place in usual if place.level == "user"]
    return next((path for path in users if path.exists()), users[0])


class _Selection:
    """The servers to export, and why the others are left out."""

    def __init__(self, configuration: Configuration, names: tuple[str, ...]) -> None:
        self.servers: dict[str, Mapping[str, Any]] = {}
        self.disabled: set[str] = set()
        self.left_out: dict[str, str] = {}
        for server in [find_server(configuration, name) for name in names] or configuration.servers.values():
            if (reason := _reason_against(server, named=bool(names))) is not None:
                self.left_out[server.name] = reason
            elif isinstance(given := server.candidate.given, Mapping):
                self.servers[server.name] = cast("Mapping[str, Any]", given)
                if configuration.entry_checks.disabled_by(server.name) is not None:
                    self.disabled.add(server.name)
        if names and self.left_out:
            name, reason = next(iter(self.left_out.items()))
            raise ConfigError(f"{name!r} is not exported: {reason}")

    def write(self, host: str, text: str | None, path: Path, replace: Collection[str]) -> Exported:
        return write(host, text, self.servers, source=str(path), replace=replace, disabled=self.disabled)

    def preview(self, host: str, path: Path, names: Collection[str]) -> str:
        """The entries that would be added, with secrets masked."""
        shown = {name: masked_entry(self.servers[name]) for name in names}
        return write(host, None, shown, source=str(path), disabled=self.disabled).text


def _reason_against(server: ConfiguredServer, *, named: bool) -> str | None:
    if server.eligibility in ("pending", "rejected"):
        return f"{server.reason}; `dragoman mcp approve {shell_quoted(server.name)}` approves it"
    if server.eligibility == "refused":
        return server.reason
    if server.scope not in _EXPORTED_SCOPES and not named:
        return f"it is of scope {server.scope}; --name {shell_quoted(server.name)} exports it"
    return None


def _confirmed_replacements(exported: Exported, dry_run: bool) -> list[str]:
    """The names of existing servers that the person confirms to replace."""
    if dry_run or not is_interactive():
        return []
    question = "Replace {}, which exists with different content?"
    return [name for name in exported.conflicts if confirm(question.format(one_line(name)))]


def _write(host: str, path: Path, chosen: _Selection, replace: Collection[str]) -> Exported:
    from dragoman.config.writer import rewrite

    done: list[Exported] = []

    def change(text: str) -> str:
        done[:] = [chosen.write(host, text or None, path, replace)]
        return done[0].text

    rewrite(path, change)
    return done[0]


def _report(
    host: str, path: Path, exported: Exported, left_out: Mapping[str, str], as_json: bool, dry_run: bool
) -> None:
    if as_json:
        echo(
            {
                "file": str(path),
                "written": exported.written,
                "unchanged": exported.unchanged,
                "conflicts": exported.conflicts,
                "leftOut": left_out,
                "notes": [{"server": n.server, "field": n.field, "text": n.text} for n in exported.notes],
                **({"text": exported.text} if dry_run else {}),
            }
        )
        return
    if dry_run:
        click.echo(visible(exported.text), nl=False)
    verb = "Would write" if dry_run else "Wrote"
    what = f"{counted(len(exported.written), 'server')} for {FORMATS[host].title}"
    click.echo(f"{verb} {what} to {one_line(str(path))}", err=dry_run)
    for name in exported.conflicts:
        mark = click.style("–", fg="yellow")
        click.echo(
            f"  {mark} {one_line(name)}: exists with different content; --force replaces it", err=dry_run
        )
    for name in exported.unchanged:
        click.echo(f"  = {one_line(name)}: it exists already", err=dry_run)
    for name, reason in left_out.items():
        mark = click.style("–", fg="yellow")
        click.echo(f"  {mark} {one_line(name)}: left out: {one_line(reason, 300)}", err=dry_run)
    if not (exported.written or exported.unchanged or exported.conflicts or left_out or exported.notes):
        click.echo("  No servers are configured.", err=dry_run)
    show_notes(exported.notes)
