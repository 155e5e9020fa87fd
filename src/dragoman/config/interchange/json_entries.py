"""Converts entries of hosts with a JSON file to Dragoman's form and back. Pure.

A `Dialect` describes how one host writes an entry; `hosts` has one for each. Fields without an equivalent are
left out and noted; an entry that cannot be converted, or would not work without them, raises `Unusable`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from dragoman.config.interchange import variables
from dragoman.config.interchange.shared import (
    TOOL_LISTS,
    CannotTranslate,
    Entry,
    Noting,
    address_of,
    as_entry,
    is_default,
    kind_of,
    kind_of_address,
    map_of,
    milliseconds,
    needed_text,
    scopes_of,
    text_of,
    texts_of,
)
from dragoman.config.interchange.variables import VariableSyntax
from dragoman.config.noted_fields import is_empty_value, noted_fields
from dragoman.transport_types import REMOTE, SELF_CONTAINED


class SignIn(Struct, frozen=True, kw_only=True):
    """How a host writes what we call `oauth`."""

    field: str
    names: Mapping[str, str]
    scopes_are_text: bool = False


class Dialect(Struct, frozen=True, kw_only=True):
    """How one host writes an entry."""

    syntax: VariableSyntax
    addresses: Mapping[str, str | None]
    """Fields that hold an address → the transport they mean by themselves; "" looks at the address, None
    is in doubt. The first in the list is used."""
    spelled: Mapping[str, str]
    """Remote transports the host knows → the field their address is written in."""
    typed: Literal["always", "needed", "never"] = "needed"
    """When `type` is written."""
    fields: Mapping[str, str] = {}
    """Our fields that the host knows too → its names."""
    sign_in: SignIn | None = None
    reasons: Mapping[str, str] = {}
    """The host's own fields → why they do not carry over."""
    shortest_timeout: int = 0
    """Time limits below this, in milliseconds, are ignored there."""
    unremarkable: frozenset[str] = frozenset()
    """The host's own fields that say nothing about the server."""
    keeps_unknown: bool = False
    """Its form is ours: what neither knows is kept."""

    @property
    def host(self) -> str:
        return self.syntax.host


# ---- import


_ELSEWHERE: Final = tuple(name for name in REMOTE if name in SELF_CONTAINED)
"""Remote types that other hosts have, too."""
NOTHING_LIKE_IT: Final = "Dragoman has no such field; it is left out"
NOT_TAKEN_OVER: Final = "trust is not imported; add the field yourself if you trust the server"


def import_entry(dialect: Dialect, raw: Any, note: Noting) -> dict[str, Any]:
    """The host's entry in our form, or `Unusable`."""
    entry = as_entry(raw)
    kind = kind_of(entry, tuple(dialect.addresses))
    taken = {"type", *dialect.fields.values()}
    if kind == "stdio":
        ours = _import_program(dialect, entry, note, taken)
    else:
        ours = _import_address(dialect, entry, kind, note, taken)
    _import_shared(dialect, entry, ours, note)
    if dialect.sign_in is not None and ours["type"] != "stdio":
        taken.add(dialect.sign_in.field)
        _import_sign_in(dialect, dialect.sign_in, entry, ours, note)
    _import_rest(dialect, entry, ours, note, taken)
    if kind == "stdio" and "type" not in entry:
        del ours["type"]
    return ours


def _import_program(dialect: Dialect, entry: Entry, note: Noting, taken: set[str]) -> dict[str, Any]:
    taken |= {"command", "args", "env", "cwd"}
    ours: dict[str, Any] = {"type": "stdio"}
    ours["command"] = _read(dialect, needed_text(entry, "command"), note, "command")
    if entry.get("args") is not None:
        ours["args"] = [
            _read(dialect, item, note, f"args[{number}]")
            for number, item in enumerate(texts_of(entry["args"], "args"))
        ]
    if entry.get("env") is not None:
        ours["env"] = _read_map(dialect, entry["env"], note, "env")
    if entry.get("cwd") is not None:
        ours["cwd"] = _read(dialect, text_of(entry["cwd"], "cwd"), note, "cwd")
    return ours


def _import_address(
    dialect: Dialect, entry: Entry, kind: str | None, note: Noting, taken: set[str]
) -> dict[str, Any]:
    field = next((name for name in dialect.addresses if entry.get(name) is not None), "url")
    url = address_of(entry, field)
    taken |= {field, "headers"}
    ours: dict[str, Any] = {"type": kind or _implied(dialect, field, url, note)}
    _check_kind(ours["type"], dialect)
    ours["url"] = _read(dialect, url, note, field)
    if entry.get("headers") is not None:
        ours["headers"] = _read_map(dialect, entry["headers"], note, "headers")
    return ours


def _implied(dialect: Dialect, field: str, url: str, note: Noting) -> str:
    meant = dialect.addresses[field]
    if meant is None:
        note(
            field,
            f"{dialect.host} read a URL without a type as SSE at first, as HTTP in newer versions; "
            "here it is sse",
        )
        return "sse"
    return meant or kind_of_address(url)


def _check_kind(kind: str, dialect: Dialect) -> None:
    if kind not in (REMOTE if dialect.keeps_unknown else _ELSEWHERE):
        raise CannotTranslate("type", "the type is not supported")


def _import_shared(dialect: Dialect, entry: Entry, ours: dict[str, Any], note: Noting) -> None:
    for field, theirs in dialect.fields.items():
        value = entry.get(theirs)
        if field == "cwd" or value is None:
            continue
        if field == "timeout":
            _import_timeout(value, theirs, ours, note)
        elif field in TOOL_LISTS:
            ours[field] = texts_of(value, theirs)
        else:
            ours[field] = _read(dialect, text_of(value, theirs), note, theirs)


def _import_timeout(value: Any, theirs: str, ours: dict[str, Any], note: Noting) -> None:
    limit = milliseconds(value)
    if limit is None:
        note(theirs, "the time limit cannot be used and is left out")
    else:
        ours["timeout"] = limit


def _import_sign_in(
    dialect: Dialect, sign_in: SignIn, entry: Entry, ours: dict[str, Any], note: Noting
) -> None:
    given = entry.get(sign_in.field)
    if not isinstance(given, Mapping):
        if not is_empty_value(given):
            note(sign_in.field, NOTHING_LIKE_IT)
        return
    theirs = as_entry(given)
    oauth: dict[str, Any] = {}
    for name, their_name in sign_in.names.items():
        value = theirs.pop(their_name, None)
        place = f"{sign_in.field}.{their_name}"
        if value is None:
            continue
        if name == "scopes":
            oauth[name] = value if sign_in.scopes_are_text else scopes_of(value, place)
        else:
            oauth[name] = _read(dialect, value, note, place) if isinstance(value, str) else value
    for rest, value in theirs.items():
        if dialect.keeps_unknown:
            oauth[rest] = value
        elif not is_empty_value(value) and (rest, value) != ("enabled", True):
            note(f"{sign_in.field}.{rest}", NOTHING_LIKE_IT)
    if oauth:
        ours["oauth"] = oauth


def _import_rest(dialect: Dialect, entry: Entry, ours: dict[str, Any], note: Noting, taken: set[str]) -> None:
    for field, value in entry.items():
        if field in taken or field in dialect.unremarkable:
            continue
        if field in ("trusted", "sampling", "roots") and dialect.keeps_unknown:
            # In this scope they have effect, and the author of the imported file must not set them.
            if not is_empty_value(value):
                note(field, NOT_TAKEN_OVER)
        elif dialect.keeps_unknown:
            ours[field] = value
        elif not is_empty_value(value):
            note(field, dialect.reasons.get(field, NOTHING_LIKE_IT))


def note_commands_and_other_hosts(ours: Entry, note: Noting) -> None:
    """Notes what a person should read before the server is used: an import is the last look at it."""
    for field, text in noted_fields(ours):
        note(field, f"it is imported: {text}")


def _read(dialect: Dialect, text: str, note: Noting, field: str) -> str:
    return variables.incoming(dialect.syntax, text, note, field)


def _read_map(dialect: Dialect, value: Any, note: Noting, field: str) -> dict[str, str]:
    return {
        name: _read(dialect, text, note, f"{field}.{name}") for name, text in map_of(value, field).items()
    }


# ---- export


_SIGN_IN: Final = ("clientId", "clientSecret", "callbackPort", "authServerMetadataUrl", "scopes", "xaa")
_OURS_ALONE: Final = frozenset({"cwd", "protocol", "enabledTools", "disabledTools", "headersHelper"})
"""Fields that even a host with our form does not know, unless its row says so."""


def export_entry(dialect: Dialect, given: Any, note: Noting) -> dict[str, Any]:
    """Our entry in the host's form, or `Unusable`."""
    entry = as_entry(given)
    kind = kind_of(entry, ("url",)) or "http"
    taken = {"type"}
    theirs: dict[str, Any] = {"type": kind} if dialect.typed == "always" else {}
    if kind == "stdio":
        _export_program(dialect, entry, theirs, note, taken)
    else:
        _export_address(dialect, entry, kind, theirs, note, taken)
    _export_shared(dialect, entry, theirs, note, taken)
    _export_sign_in(dialect, entry, kind, theirs, note, taken)
    _export_rest(dialect, entry, theirs, note, taken)
    return theirs


def _export_program(
    dialect: Dialect, entry: Entry, theirs: dict[str, Any], note: Noting, taken: set[str]
) -> None:
    taken |= {"command", "args", "env"}
    theirs["command"] = _write(dialect, needed_text(entry, "command"), note, "command")
    if entry.get("args") is not None:
        theirs["args"] = [
            _write(dialect, item, note, f"args[{number}]")
            for number, item in enumerate(texts_of(entry["args"], "args"))
        ]
    if entry.get("env") is not None:
        theirs["env"] = _write_map(dialect, entry["env"], note, "env")


def _export_address(
    dialect: Dialect, entry: Entry, kind: str, theirs: dict[str, Any], note: Noting, taken: set[str]
) -> None:
    if kind not in dialect.spelled:
        raise CannotTranslate(
            "type", f"{dialect.host} cannot reach servers of this type; the server is left out"
        )
    taken |= {"url", "headers"}
    field, url = dialect.spelled[kind], address_of(entry, "url")
    meant = dialect.addresses[field]
    written = _write(dialect, url, note, "url")
    if (meant if meant != "" else kind_of_address(written)) != kind:
        if dialect.typed == "never":
            note("type", f"{dialect.host} detects by itself whether a URL is HTTP or SSE")
        else:
            theirs["type"] = kind
    theirs[field] = written
    if entry.get("headers") is not None:
        theirs["headers"] = _write_map(dialect, entry["headers"], note, "headers")


def _export_shared(
    dialect: Dialect, entry: Entry, theirs: dict[str, Any], note: Noting, taken: set[str]
) -> None:
    for field, name in dialect.fields.items():
        value = entry.get(field)
        taken.add(field)
        if value is None:
            continue
        if field in TOOL_LISTS:
            theirs[name] = texts_of(value, field)
        elif field == "timeout":
            _export_timeout(dialect, value, name, theirs, note)
        elif (text := variables.outgoing(dialect.syntax, text_of(value, field), note, field)) is not None:
            theirs[name] = text


def _export_timeout(dialect: Dialect, value: Any, name: str, theirs: dict[str, Any], note: Noting) -> None:
    limit = milliseconds(value)
    if limit is None:
        note("timeout", "the time limit cannot be used and is left out")
        return
    if limit < dialect.shortest_timeout:
        note("timeout", f"{dialect.host} ignores time limits below {dialect.shortest_timeout} ms")
    theirs[name] = limit


def _export_sign_in(
    dialect: Dialect, entry: Entry, kind: str, theirs: dict[str, Any], note: Noting, taken: set[str]
) -> None:
    sign_in = dialect.sign_in
    if sign_in is None or kind == "stdio" or entry.get("oauth") is None:
        return
    taken.add("oauth")
    written: dict[str, Any] = {}
    for name, value in as_entry(entry["oauth"]).items():
        if name not in sign_in.names and (name in _SIGN_IN or not dialect.keeps_unknown):
            if not is_empty_value(value):
                note(f"oauth.{name}", f"{dialect.host} has no such field; it is left out")
            continue
        if name == "scopes":
            scopes = scopes_of(value, "oauth.scopes")
            written[sign_in.names[name]] = " ".join(scopes) if sign_in.scopes_are_text else scopes
        elif isinstance(value, str):
            written[sign_in.names.get(name, name)] = _write(dialect, value, note, f"oauth.{name}")
        else:
            written[sign_in.names.get(name, name)] = value
    if written:
        theirs[sign_in.field] = written


def _export_rest(
    dialect: Dialect, entry: Entry, theirs: dict[str, Any], note: Noting, taken: set[str]
) -> None:
    for field, value in entry.items():
        if field in taken or is_default(field, value):
            continue
        if dialect.keeps_unknown and field not in _OURS_ALONE:
            theirs[field] = value
        else:
            note(field, f"{dialect.host} has no such field; it is left out")


def _write(dialect: Dialect, text: str, note: Noting, field: str) -> str:
    written = variables.outgoing(dialect.syntax, text, note, field)
    if written is None:
        raise CannotTranslate(field, f"{dialect.host} knows no variables; the server is left out")
    return written


def _write_map(dialect: Dialect, value: Any, note: Noting, field: str) -> dict[str, str]:
    """Texts by name; one that needs a variable the host cannot look up is left out."""
    written: dict[str, str] = {}
    for name, text in map_of(value, field).items():
        theirs = variables.outgoing(dialect.syntax, text, note, f"{field}.{name}")
        if theirs is None:
            note(f"{field}.{name}", f"{dialect.host} knows no variables: add the value there yourself")
        else:
            written[name] = theirs
    return written
