"""Functions that several commands of `dragoman mcp` share.

For `add`, `add-json` and `import`: check an entry, compare it with policy, optionally connect to it, and
write it. For `import` and `export`: shared arguments, and the report of settings that could not be converted.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import click

from dragoman.auth.references import REFERENCE
from dragoman.cleaning import one_line
from dragoman.cli.common import load_and_report, run_with_host
from dragoman.cli.render.columns import echo_wrapped
from dragoman.cli.render.document import echo
from dragoman.cli.render.servers import counted, show_problem
from dragoman.config import edits
from dragoman.config.interchange.formats import FORMATS
from dragoman.config.interchange.shared import Note
from dragoman.config.load import Configuration, load
from dragoman.config.masking import COVER, literal_secrets, masked_entry, masked_value
from dragoman.config.merge import ConfiguredServer
from dragoman.config.scopes import IN_PROJECT, Scope, Sources
from dragoman.errors import ConfigError, NotConnected
from dragoman.names import shell_quoted

if TYPE_CHECKING:
    from dragoman.host import Host


force_option = click.option("--force", is_flag=True, help="Replace a server of the same name.")
check_option = click.option("--check", is_flag=True, help="Connect to it first; add it only if that works.")
format_argument = click.argument("host", type=click.Choice(list(FORMATS)))
name_option = click.option("--name", "names", multiple=True, help="Only this server. Repeatable.")


def add_server(
    name: str, entry: Mapping[str, Any], scope: str, *, force: bool, check: bool, as_json: bool
) -> None:
    sources = Sources.here()
    configuration = load_and_report(sources)
    target = cast("Scope", scope)
    missing = check_new_server(configuration, name, entry, target, force=force)
    tools = _connect_once(sources, name, entry, target) if check else None
    entry = with_stored_secret(name, entry, target)
    path = edits.put_server(sources, target, name, entry)
    notes = _notes(load(sources), name, target)
    if as_json:
        added = {"name": name, "scope": scope, "file": str(path), "entry": masked_entry(entry)}
        echo({"added": added, "unsetVariables": missing, "toolCount": tools, "notes": notes})
        return
    works = f"; connected, {counted(tools, 'tool')}" if tools is not None else ""
    click.echo(f"Added {name} to {scope} ({one_line(str(path))}){works}")
    shared = shared_secret_notes(entry, target)
    for note in (*unset_variable_notes(missing), *_missing_program(entry), *notes, *shared):
        show_problem(note)
    if target in IN_PROJECT and "command" in entry and sources.cwd != sources.project_root:
        show_problem(f"it starts in {sources.project_root}, the project's folder")


def check_new_server(
    configuration: Configuration, name: str, entry: Mapping[str, Any], scope: Scope, *, force: bool
) -> tuple[str, ...]:
    """Raises `ConfigError` if the server may not be written. Returns its variables that are not set."""
    edits.check_name(name)
    missing = edits.check_entry(configuration, name, entry)
    edits.check_policy(configuration, name, entry, scope)
    path = configuration.sources.file_of(scope)
    if not force and edits.has_entry(path, name):
        raise ConfigError(f"there is already a server {name!r} in {path}", hint="Replace it with --force.")
    return missing


def with_stored_secret(name: str, entry: Mapping[str, Any], scope: Scope) -> Mapping[str, Any]:
    """Stores secrets of `oauth` that are in plain text. Returns the entry with references to them."""
    oauth: Any = entry.get("oauth")
    url = entry.get("url")
    if not isinstance(oauth, dict):
        return entry
    fields = cast("dict[str, Any]", oauth)
    plain = {field: fields[field] for field in OAUTH_SECRETS if _is_plain_text(fields.get(field))}
    for field in [field for field, text in plain.items() if "${" in text or not isinstance(url, str)]:
        # A variable with a default or with text beside it cannot be stored, nor a secret without a URL.
        del plain[field]
        if scope in IN_PROJECT:
            raise ConfigError(
                f"server {name!r}: oauth.{field} would be written in plain text into the project's folder",
                hint="Write it as ${VARIABLE} alone, or use --scope user.",
            )
    if not plain or not isinstance(url, str):
        return entry
    from dragoman.auth.client_secrets import store_client_secret
    from dragoman.auth.stores.base import StoreFailed, Vault

    try:
        stored = {field: store_client_secret(Vault(), name, url, text) for field, text in plain.items()}
    except StoreFailed as failed:
        raise ConfigError(f"server {name!r}: {failed}", hint="Write the secret as ${VARIABLE}.") from None
    return {**entry, "oauth": {**fields, **stored}}


OAUTH_SECRETS: Final = ("clientSecret", "privateKey", "workloadToken")


def _is_plain_text(value: object) -> bool:
    """Whether the value is a secret in plain text: not a ${VARIABLE}, a file or a reference to the store."""
    return isinstance(value, str) and not value.startswith(("@", REFERENCE)) and COVER in masked_value(value)


def _connect_once(sources: Sources, name: str, entry: Mapping[str, Any], scope: Scope) -> int:
    """Connects in the folder in which the server will start. Returns the number of tools."""
    if scope in IN_PROJECT:
        os.chdir(sources.project_root)

    async def work(host: Host) -> int:
        view = (await host.ready())[name]
        if view.error is not None:
            raise view.error
        if view.status != "connected":
            raise NotConnected(name, view.status, view.reason)
        return view.tool_count

    return run_with_host(Sources.here(given={name: entry}, given_source="--check"), work, only=[name])


def _missing_program(entry: Mapping[str, Any]) -> Iterator[str]:
    command = entry.get("command")
    if isinstance(command, str) and not set("/\\$") & set(command) and shutil.which(command) is None:
        yield f"there is no program {command!r} on PATH"


def shared_secret_notes(entry: Mapping[str, Any], scope: Scope) -> list[str]:
    shared = literal_secrets(entry) if scope == "project" else ()
    return [f"{', '.join(shared)} will be shared with everyone who has the project"] if shared else []


def unset_variable_notes(missing: Iterable[str]) -> list[str]:
    return [f"{variable} is not set yet" for variable in missing]


def _notes(configuration: Configuration, name: str, scope: Scope) -> list[str]:
    """Effects of the new entry that the person may not expect."""
    notes: list[str] = []
    server = configuration.servers.get(name)
    if server is not None and server.scope != scope:
        notes.append(f"the entry of {server.candidate.origin} is used instead: its scope has precedence")
    elif server is not None and server.eligibility == "disabled":
        notes.append(
            f"it is {server.reason}; `dragoman mcp enable {one_line(shell_quoted(name))}` enables it"
        )
    elif server is not None and server.replaced:
        notes.append(f"it replaces the entry of {server.replaced[0].origin}")
    if server is not None and server.scope == scope:
        notes.extend(server.warnings)
        notes.extend(_unusable_path(server))
    for dropped in configuration.dropped:
        if dropped.kept is None:
            continue
        if (dropped.candidate.name, dropped.candidate.scope) == (name, scope):
            notes.append(f"it is left out: {dropped.text}")
            notes.extend(ConfiguredServer(candidate=dropped.candidate).warnings)
        elif server is not None and dropped.kept == server.candidate:
            other = f"{dropped.candidate.name!r} of {dropped.candidate.origin}"
            notes.append(f"{other} is left out from now on: it is the same server")
    notes.extend(_same_in_its_file(configuration, server) if server is not None else ())
    return notes


def _unusable_path(server: ConfiguredServer) -> Iterator[str]:
    """Notes a command that is a path, if no program is there."""
    config, given = server.config, cast("Mapping[str, Any]", server.candidate.given)
    if config is None or os.sep not in (config.command or ""):
        return
    folder = os.path.normpath(config.cwd or ".")
    path = os.path.join(folder, config.command or "")
    if shutil.which(path) is None:
        place = "" if path == config.command else f" in {one_line(folder)}, where it starts"
        problem = "no program that can be executed" if os.path.isfile(path) else "no program"
        yield f"there is {problem} {given['command']!r}{place}"


def _same_in_its_file(configuration: Configuration, server: ConfiguredServer) -> Iterator[str]:
    """Notes other entries of the same file that define the same server: both are used."""
    signature = server.config.signature if server.config is not None else None
    others = (each for each in configuration.servers.values() if each.source == server.source)
    for other in others if signature is not None else ():
        if other.name != server.name and other.config is not None and other.config.signature == signature:
            yield f"it is the same server as {other.name!r} in the same file; both are used"


def show_notes(notes: Iterable[Note]) -> None:
    """Reports settings that could not be converted, on stderr."""
    for note in notes:
        where = ": ".join(one_line(part) for part in (note.server, note.field) if part)
        text = f"{where}: {note.text}" if where else note.text
        echo_wrapped(one_line(text), label="  ! ", colour="yellow", err=True)
