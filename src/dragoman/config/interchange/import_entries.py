"""Converts an entry of another host's JSON file to a Dragoman entry. Pure.

The host's row in `dialects` describes its format. Fields without an equivalent are noted; an entry that
cannot be converted raises `Unusable` with the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from dragoman.config.interchange import variables
from dragoman.config.interchange.dialects import Dialect, SignIn
from dragoman.config.interchange.fields import (
    TOOL_LISTS,
    Entry,
    address_of,
    as_entry,
    is_idle,
    kind_of,
    kind_of_address,
    map_of,
    milliseconds,
    needed_text,
    scopes_of,
    text_of,
    texts_of,
)
from dragoman.config.interchange.notes import Page, Unusable
from dragoman.transport_types import REMOTE, SELF_CONTAINED

_ELSEWHERE: Final = tuple(name for name in REMOTE if name in SELF_CONTAINED)
"""Remote types that other hosts have, too."""
NOTHING_LIKE_IT: Final = "Dragoman has no such field; it is left out"
NOT_TAKEN_OVER: Final = "trust is not imported; add the field yourself if you trust the server"
_POINTED_OUT: Final = {
    "headersHelper": "it is imported: this command is run whenever the server is connected",
    "proxy": "it is imported: every message to the server goes through this proxy",
    "tls": "it is imported: it decides which certificates are accepted, or sent to the server",
    "oauth.authServerMetadataUrl": "it is imported: sign-in trusts the metadata at this URL",
}
"""Fields of our form that run a command, or send messages to another host than the URL names."""


def entry_in(dialect: Dialect, raw: Any, page: Page) -> dict[str, Any]:
    """The host's entry in our form, or `Unusable`."""
    entry = as_entry(raw)
    kind = kind_of(entry, tuple(dialect.addresses))
    taken = {"type", *dialect.fields.values()}
    if kind == "stdio":
        ours = _program_in(dialect, entry, page, taken)
    else:
        ours = _address_in(dialect, entry, kind, page, taken)
    _shared_in(dialect, entry, ours, page)
    if dialect.sign_in is not None and ours["type"] != "stdio":
        taken.add(dialect.sign_in.field)
        _sign_in(dialect, dialect.sign_in, entry, ours, page)
    _leftovers(dialect, entry, ours, page, taken)
    if kind == "stdio" and "type" not in entry:
        del ours["type"]
    return ours


def _program_in(dialect: Dialect, entry: Entry, page: Page, taken: set[str]) -> dict[str, Any]:
    taken |= {"command", "args", "env", "cwd"}
    ours: dict[str, Any] = {"type": "stdio"}
    ours["command"] = _read(dialect, needed_text(entry, "command"), page, "command")
    if entry.get("args") is not None:
        ours["args"] = [
            _read(dialect, item, page, f"args[{number}]")
            for number, item in enumerate(texts_of(entry["args"], "args"))
        ]
    if entry.get("env") is not None:
        ours["env"] = _read_map(dialect, entry["env"], page, "env")
    if entry.get("cwd") is not None:
        ours["cwd"] = _read(dialect, text_of(entry["cwd"], "cwd"), page, "cwd")
    return ours


def _address_in(
    dialect: Dialect, entry: Entry, kind: str | None, page: Page, taken: set[str]
) -> dict[str, Any]:
    field = next((name for name in dialect.addresses if entry.get(name) is not None), "url")
    url = address_of(entry, field)
    taken |= {field, "headers"}
    ours: dict[str, Any] = {"type": kind or _implied(dialect, field, url, page)}
    _check_kind(ours["type"], dialect)
    ours["url"] = _read(dialect, url, page, field)
    if entry.get("headers") is not None:
        ours["headers"] = _read_map(dialect, entry["headers"], page, "headers")
    return ours


def _implied(dialect: Dialect, field: str, url: str, page: Page) -> str:
    meant = dialect.addresses[field]
    if meant is None:
        page.say(
            field,
            f"{dialect.host} read a URL without a type as SSE at first, as HTTP in newer versions; "
            "here it is sse",
        )
        return "sse"
    return meant or kind_of_address(url)


def _check_kind(kind: str, dialect: Dialect) -> None:
    if kind not in (REMOTE if dialect.keeps_unknown else _ELSEWHERE):
        raise Unusable("type", "the type is not supported")


def _shared_in(dialect: Dialect, entry: Entry, ours: dict[str, Any], page: Page) -> None:
    for field, theirs in dialect.fields.items():
        value = entry.get(theirs)
        if field == "cwd" or value is None:
            continue
        if field == "timeout":
            _timeout_in(value, theirs, ours, page)
        elif field in TOOL_LISTS:
            ours[field] = texts_of(value, theirs)
        else:
            ours[field] = _read(dialect, text_of(value, theirs), page, theirs)


def _timeout_in(value: Any, theirs: str, ours: dict[str, Any], page: Page) -> None:
    limit = milliseconds(value)
    if limit is None:
        page.say(theirs, "the time limit cannot be used and is left out")
    else:
        ours["timeout"] = limit


def _sign_in(dialect: Dialect, sign_in: SignIn, entry: Entry, ours: dict[str, Any], page: Page) -> None:
    given = entry.get(sign_in.field)
    if not isinstance(given, Mapping):
        if not is_idle(given):
            page.say(sign_in.field, NOTHING_LIKE_IT)
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
            oauth[name] = _read(dialect, value, page, place) if isinstance(value, str) else value
    for rest, value in theirs.items():
        if dialect.keeps_unknown:
            oauth[rest] = value
        elif not is_idle(value) and (rest, value) != ("enabled", True):
            page.say(f"{sign_in.field}.{rest}", NOTHING_LIKE_IT)
    if oauth:
        ours["oauth"] = oauth


def _leftovers(dialect: Dialect, entry: Entry, ours: dict[str, Any], page: Page, taken: set[str]) -> None:
    for field, value in entry.items():
        if field in taken or field in dialect.unremarkable:
            continue
        if field == "trusted" and dialect.keeps_unknown:
            # In this scope `trusted` has effect, and the author of the imported file must not set it.
            if not is_idle(value):
                page.say(field, NOT_TAKEN_OVER)
        elif dialect.keeps_unknown:
            ours[field] = value
        elif not is_idle(value):
            page.say(field, dialect.reasons.get(field, NOTHING_LIKE_IT))


def point_out(ours: Entry, page: Page) -> None:
    """Notes what a person should read before the server is used: an import is the last look at it."""
    for field, text in _POINTED_OUT.items():
        owner, _, name = field.rpartition(".")
        fields: Any = ours.get(owner) if owner else ours
        if isinstance(fields, Mapping) and not is_idle(cast("Entry", fields).get(name)):
            page.say(field, text)


def _read(dialect: Dialect, text: str, page: Page, field: str) -> str:
    return variables.incoming(dialect.syntax, text, page, field)


def _read_map(dialect: Dialect, value: Any, page: Page, field: str) -> dict[str, str]:
    return {
        name: _read(dialect, text, page, f"{field}.{name}") for name, text in map_of(value, field).items()
    }
