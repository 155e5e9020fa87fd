"""Converts a Dragoman entry to an entry of another host's JSON file. Pure.

The host's row in `dialects` describes its format. Fields that the host does not support are left out and
noted; a server that would not work without them raises `Unusable`.
"""

from __future__ import annotations

from typing import Any, Final

from dragoman.config.interchange import variables
from dragoman.config.interchange.dialects import Dialect
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
    says_nothing,
    scopes_of,
    text_of,
    texts_of,
)
from dragoman.config.interchange.notes import Page, Unusable

_SIGN_IN: Final = ("clientId", "clientSecret", "callbackPort", "authServerMetadataUrl", "scopes", "xaa")
_OURS_ALONE: Final = frozenset({"cwd", "protocol", "enabledTools", "disabledTools", "headersHelper"})
"""Fields that even a host with our form does not know, unless its row says so."""


def entry_out(dialect: Dialect, given: Any, page: Page) -> dict[str, Any]:
    """Our entry in the host's form, or `Unusable`."""
    entry = as_entry(given)
    kind = kind_of(entry, ("url",)) or "http"
    taken = {"type"}
    theirs: dict[str, Any] = {"type": kind} if dialect.typed == "always" else {}
    if kind == "stdio":
        _program_out(dialect, entry, theirs, page, taken)
    else:
        _address_out(dialect, entry, kind, theirs, page, taken)
    _shared_out(dialect, entry, theirs, page, taken)
    _sign_out(dialect, entry, kind, theirs, page, taken)
    _unsaid(dialect, entry, theirs, page, taken)
    return theirs


def _program_out(dialect: Dialect, entry: Entry, theirs: dict[str, Any], page: Page, taken: set[str]) -> None:
    taken |= {"command", "args", "env"}
    theirs["command"] = _write(dialect, needed_text(entry, "command"), page, "command")
    if entry.get("args") is not None:
        theirs["args"] = [
            _write(dialect, item, page, f"args[{number}]")
            for number, item in enumerate(texts_of(entry["args"], "args"))
        ]
    if entry.get("env") is not None:
        theirs["env"] = _write_map(dialect, entry["env"], page, "env")


def _address_out(
    dialect: Dialect, entry: Entry, kind: str, theirs: dict[str, Any], page: Page, taken: set[str]
) -> None:
    if kind not in dialect.spelled:
        raise Unusable("type", f"{dialect.host} cannot reach servers of this type; the server is left out")
    taken |= {"url", "headers"}
    field, url = dialect.spelled[kind], address_of(entry, "url")
    meant = dialect.addresses[field]
    written = _write(dialect, url, page, "url")
    if (meant if meant != "" else kind_of_address(written)) != kind:
        if dialect.typed == "never":
            page.say("type", f"{dialect.host} detects by itself whether a URL is HTTP or SSE")
        else:
            theirs["type"] = kind
    theirs[field] = written
    if entry.get("headers") is not None:
        theirs["headers"] = _write_map(dialect, entry["headers"], page, "headers")


def _shared_out(dialect: Dialect, entry: Entry, theirs: dict[str, Any], page: Page, taken: set[str]) -> None:
    for field, name in dialect.fields.items():
        value = entry.get(field)
        taken.add(field)
        if value is None:
            continue
        if field in TOOL_LISTS:
            theirs[name] = texts_of(value, field)
        elif field == "timeout":
            _timeout_out(dialect, value, name, theirs, page)
        elif (text := variables.outgoing(dialect.syntax, text_of(value, field), page, field)) is not None:
            theirs[name] = text


def _timeout_out(dialect: Dialect, value: Any, name: str, theirs: dict[str, Any], page: Page) -> None:
    limit = milliseconds(value)
    if limit is None:
        page.say("timeout", "the time limit cannot be used and is left out")
        return
    if limit < dialect.shortest_timeout:
        page.say("timeout", f"{dialect.host} ignores time limits below {dialect.shortest_timeout} ms")
    theirs[name] = limit


def _sign_out(
    dialect: Dialect, entry: Entry, kind: str, theirs: dict[str, Any], page: Page, taken: set[str]
) -> None:
    sign_in = dialect.sign_in
    if sign_in is None or kind == "stdio" or entry.get("oauth") is None:
        return
    taken.add("oauth")
    written: dict[str, Any] = {}
    for name, value in as_entry(entry["oauth"]).items():
        if name not in sign_in.names and (name in _SIGN_IN or not dialect.keeps_unknown):
            if not is_idle(value):
                page.say(f"oauth.{name}", f"{dialect.host} has no such field; it is left out")
            continue
        if name == "scopes":
            scopes = scopes_of(value, "oauth.scopes")
            written[sign_in.names[name]] = " ".join(scopes) if sign_in.scopes_are_text else scopes
        elif isinstance(value, str):
            written[sign_in.names.get(name, name)] = _write(dialect, value, page, f"oauth.{name}")
        else:
            written[sign_in.names.get(name, name)] = value
    if written:
        theirs[sign_in.field] = written


def _unsaid(dialect: Dialect, entry: Entry, theirs: dict[str, Any], page: Page, taken: set[str]) -> None:
    for field, value in entry.items():
        if field in taken or says_nothing(field, value):
            continue
        if dialect.keeps_unknown and field not in _OURS_ALONE:
            theirs[field] = value
        else:
            page.say(field, f"{dialect.host} has no such field; it is left out")


def _write(dialect: Dialect, text: str, page: Page, field: str) -> str:
    written = variables.outgoing(dialect.syntax, text, page, field)
    if written is None:
        raise Unusable(field, f"{dialect.host} knows no variables; the server is left out")
    return written


def _write_map(dialect: Dialect, value: Any, page: Page, field: str) -> dict[str, str]:
    """Texts by name; one that needs a variable the host cannot look up is left out."""
    written: dict[str, str] = {}
    for name, text in map_of(value, field).items():
        theirs = variables.outgoing(dialect.syntax, text, page, f"{field}.{name}")
        if theirs is None:
            page.say(f"{field}.{name}", f"{dialect.host} knows no variables: add the value there yourself")
        else:
            written[name] = theirs
    return written
