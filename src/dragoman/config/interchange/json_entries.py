"""Converts entries of hosts with a JSON file to Dragoman's form and back. Pure.

A `Dialect` describes how one host writes an entry; `hosts` has one for each. Fields without an equivalent are
left out and noted; an entry that cannot be converted, or would not work without them, raises
`CannotTranslate`.
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
    needed_text,
    scopes_of,
    text_of,
    texts_of,
    time_limit,
)
from dragoman.config.interchange.variables import VariableSyntax
from dragoman.config.noted_fields import is_empty_value, noted_fields
from dragoman.transport_types import REMOTE, SELF_CONTAINED


class SignIn(Struct, frozen=True, kw_only=True):
    """How a host writes the `oauth` settings."""

    field: str
    names: Mapping[str, str]
    scopes_are_text: bool = False


class Dialect(Struct, frozen=True, kw_only=True):
    """How one host writes an entry."""

    syntax: VariableSyntax
    addresses: Mapping[str, str | None]
    """Fields that contain a URL → the transport that the field implies; "": it depends on the URL, None:
    unknown. The first one is used for export."""
    spelled: Mapping[str, str]
    """Remote transports the host knows → the field their address is written in."""
    typed: Literal["always", "needed", "never"] = "needed"
    """When `type` is written."""
    fields: Mapping[str, str] = {}
    """Dragoman's fields that the host also has → the host's names."""
    sign_in: SignIn | None = None
    reasons: Mapping[str, str] = {}
    """The host's own fields → why they cannot be converted."""
    shortest_timeout: int = 0
    """Time limits below this, in milliseconds, are ignored there."""
    unremarkable: frozenset[str] = frozenset()
    """The host's own fields that do not describe the server."""
    keeps_unknown: bool = False
    """Whether the host has Dragoman's form; then unknown fields are kept."""

    @property
    def host(self) -> str:
        return self.syntax.host


# ---- import


_ELSEWHERE: Final = tuple(name for name in REMOTE if name in SELF_CONTAINED)
"""Remote types that other hosts have, too."""
NOTHING_LIKE_IT: Final = "Dragoman has no such field; it is left out"
NOT_TAKEN_OVER: Final = "trust is not imported; add the field yourself if you trust the server"


def import_entry(dialect: Dialect, raw: Any, note: Noting) -> dict[str, Any]:
    """The host's entry in Dragoman's form, or `CannotTranslate`."""
    return _Import(dialect, as_entry(raw), note).result()


class _Import:
    def __init__(self, dialect: Dialect, entry: Entry, note: Noting) -> None:
        self._dialect = dialect
        self._entry = entry
        self._note = note
        self._taken = {"type", *dialect.fields.values()}
        """The fields of the entry that were looked at."""
        self._ours: dict[str, Any] = {}

    def result(self) -> dict[str, Any]:
        kind = kind_of(self._entry, tuple(self._dialect.addresses))
        if kind == "stdio":
            self._program()
        else:
            self._address(kind)
        self._shared()
        if self._dialect.sign_in is not None and self._ours["type"] != "stdio":
            self._sign_in(self._dialect.sign_in)
        self._rest()
        if kind == "stdio" and "type" not in self._entry:
            del self._ours["type"]
        return self._ours

    def _program(self) -> None:
        entry, ours = self._entry, self._ours
        self._taken |= {"command", "args", "env", "cwd"}
        ours["type"] = "stdio"
        ours["command"] = self._read(needed_text(entry, "command"), "command")
        if entry.get("args") is not None:
            args = enumerate(texts_of(entry["args"], "args"))
            ours["args"] = [self._read(item, f"args[{number}]") for number, item in args]
        if entry.get("env") is not None:
            ours["env"] = self._read_map("env")
        if entry.get("cwd") is not None:
            ours["cwd"] = self._read(text_of(entry["cwd"], "cwd"), "cwd")

    def _address(self, kind: str | None) -> None:
        known = (name for name in self._dialect.addresses if self._entry.get(name) is not None)
        field = next(known, "url")
        url = address_of(self._entry, field)
        self._taken |= {field, "headers"}
        self._ours["type"] = kind or self._implied(field, url)
        if self._ours["type"] not in (REMOTE if self._dialect.keeps_unknown else _ELSEWHERE):
            raise CannotTranslate("type", "the type is not supported")
        self._ours["url"] = self._read(url, field)
        if self._entry.get("headers") is not None:
            self._ours["headers"] = self._read_map("headers")

    def _implied(self, field: str, url: str) -> str:
        meant = self._dialect.addresses[field]
        if meant is None:
            versions = "read a URL without a type as SSE at first, as HTTP in newer versions"
            self._note(field, f"{self._dialect.host} {versions}; here it is sse")
            return "sse"
        return meant or kind_of_address(url)

    def _shared(self) -> None:
        for field, theirs in self._dialect.fields.items():
            value = self._entry.get(theirs)
            if field == "cwd" or value is None:
                continue
            if field == "timeout":
                if (limit := time_limit(value, theirs, self._note)) is not None:
                    self._ours["timeout"] = limit
            elif field in TOOL_LISTS:
                self._ours[field] = texts_of(value, theirs)
            else:
                self._ours[field] = self._read(text_of(value, theirs), theirs)

    def _sign_in(self, sign_in: SignIn) -> None:
        self._taken.add(sign_in.field)
        given = self._entry.get(sign_in.field)
        if not isinstance(given, Mapping):
            if not is_empty_value(given):
                self._note(sign_in.field, NOTHING_LIKE_IT)
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
                oauth[name] = self._read(value, place) if isinstance(value, str) else value
        for rest, value in theirs.items():
            if self._dialect.keeps_unknown:
                oauth[rest] = value
            elif not is_empty_value(value) and (rest, value) != ("enabled", True):
                self._note(f"{sign_in.field}.{rest}", NOTHING_LIKE_IT)
        if oauth:
            self._ours["oauth"] = oauth

    def _rest(self) -> None:
        dialect = self._dialect
        for field, value in self._entry.items():
            if field in self._taken or field in dialect.unremarkable:
                continue
            if field in ("trusted", "sampling", "roots") and dialect.keeps_unknown:
                # In this scope they have effect, and the author of the imported file must not set them.
                if not is_empty_value(value):
                    self._note(field, NOT_TAKEN_OVER)
            elif dialect.keeps_unknown:
                self._ours[field] = value
            elif not is_empty_value(value):
                self._note(field, dialect.reasons.get(field, NOTHING_LIKE_IT))

    def _read(self, text: str, field: str) -> str:
        return variables.incoming(self._dialect.syntax, text, self._note, field)

    def _read_map(self, field: str) -> dict[str, str]:
        pairs = map_of(self._entry[field], field).items()
        return {name: self._read(text, f"{field}.{name}") for name, text in pairs}


def note_commands_and_other_hosts(ours: Entry, note: Noting) -> None:
    """Notes what a person should read before the server is used: an import is the last look at it."""
    for field, text in noted_fields(ours):
        note(field, f"it is imported: {text}")


# ---- export


_SIGN_IN: Final = ("clientId", "clientSecret", "callbackPort", "authServerMetadataUrl", "scopes", "xaa")
_OURS_ALONE: Final = frozenset({"cwd", "protocol", "enabledTools", "disabledTools", "headersHelper"})
"""Fields that even a host with Dragoman's form does not know, unless its `Dialect` lists them."""


def export_entry(dialect: Dialect, given: Any, note: Noting) -> dict[str, Any]:
    """Dragoman's entry in the host's form, or `CannotTranslate`."""
    return _Export(dialect, as_entry(given), note).result()


class _Export:
    def __init__(self, dialect: Dialect, entry: Entry, note: Noting) -> None:
        self._dialect = dialect
        self._entry = entry
        self._note = note
        self._kind = kind_of(entry, ("url",)) or "http"
        self._taken = {"type"}
        """The fields of the entry that were looked at."""
        self._theirs: dict[str, Any] = {"type": self._kind} if dialect.typed == "always" else {}

    def result(self) -> dict[str, Any]:
        if self._kind == "stdio":
            self._program()
        else:
            self._address()
        self._shared()
        self._sign_in()
        for field, value in self._entry.items():
            if field in self._taken or is_default(field, value):
                continue
            if self._dialect.keeps_unknown and field not in _OURS_ALONE:
                self._theirs[field] = value
            else:
                self._note(field, f"{self._dialect.host} has no such field; it is left out")
        return self._theirs

    def _program(self) -> None:
        entry = self._entry
        self._taken |= {"command", "args", "env"}
        self._theirs["command"] = self._write(needed_text(entry, "command"), "command")
        if entry.get("args") is not None:
            args = enumerate(texts_of(entry["args"], "args"))
            self._theirs["args"] = [self._write(item, f"args[{number}]") for number, item in args]
        if entry.get("env") is not None:
            self._theirs["env"] = self._write_map("env")

    def _address(self) -> None:
        dialect, kind = self._dialect, self._kind
        if kind not in dialect.spelled:
            raise CannotTranslate(
                "type", f"{dialect.host} cannot reach servers of this type; the server is left out"
            )
        self._taken |= {"url", "headers"}
        field = dialect.spelled[kind]
        meant = dialect.addresses[field]
        written = self._write(address_of(self._entry, "url"), "url")
        if (meant if meant != "" else kind_of_address(written)) != kind:
            if dialect.typed == "never":
                self._note("type", f"{dialect.host} detects by itself whether a URL is HTTP or SSE")
            else:
                self._theirs["type"] = kind
        self._theirs[field] = written
        if self._entry.get("headers") is not None:
            self._theirs["headers"] = self._write_map("headers")

    def _shared(self) -> None:
        dialect, note = self._dialect, self._note
        for field, name in dialect.fields.items():
            value = self._entry.get(field)
            self._taken.add(field)
            if value is None:
                continue
            if field in TOOL_LISTS:
                self._theirs[name] = texts_of(value, field)
            elif field == "timeout":
                self._timeout(value, name)
            elif (text := variables.outgoing(dialect.syntax, text_of(value, field), note, field)) is not None:
                self._theirs[name] = text

    def _timeout(self, value: Any, name: str) -> None:
        limit = time_limit(value, "timeout", self._note)
        if limit is None:
            return
        shortest = self._dialect.shortest_timeout
        if limit < shortest:
            self._note("timeout", f"{self._dialect.host} ignores time limits below {shortest} ms")
        self._theirs[name] = limit

    def _sign_in(self) -> None:
        sign_in = self._dialect.sign_in
        if sign_in is None or self._kind == "stdio" or self._entry.get("oauth") is None:
            return
        self._taken.add("oauth")
        written: dict[str, Any] = {}
        for name, value in as_entry(self._entry["oauth"]).items():
            if name not in sign_in.names and (name in _SIGN_IN or not self._dialect.keeps_unknown):
                if not is_empty_value(value):
                    self._note(f"oauth.{name}", f"{self._dialect.host} has no such field; it is left out")
                continue
            if name == "scopes":
                scopes = scopes_of(value, "oauth.scopes")
                written[sign_in.names[name]] = " ".join(scopes) if sign_in.scopes_are_text else scopes
            elif isinstance(value, str):
                written[sign_in.names.get(name, name)] = self._write(value, f"oauth.{name}")
            else:
                written[sign_in.names.get(name, name)] = value
        if written:
            self._theirs[sign_in.field] = written

    def _write(self, text: str, field: str) -> str:
        written = variables.outgoing(self._dialect.syntax, text, self._note, field)
        if written is None:
            raise CannotTranslate(field, f"{self._dialect.host} knows no variables; the server is left out")
        return written

    def _write_map(self, field: str) -> dict[str, str]:
        """Writes texts by name; a text with a variable that the host cannot expand is left out."""
        written: dict[str, str] = {}
        for name, text in map_of(self._entry[field], field).items():
            theirs = variables.outgoing(self._dialect.syntax, text, self._note, f"{field}.{name}")
            if theirs is None:
                reason = f"{self._dialect.host} knows no variables: add the value there yourself"
                self._note(f"{field}.{name}", reason)
            else:
                written[name] = theirs
        return written
