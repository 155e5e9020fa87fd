"""Converts an entry of Dragoman's form for another host's JSON file, by the host's row in `manners`. Pure.

What the host cannot express is left out and noted. A server that would behave differently without it raises
`Unusable`.
"""

from __future__ import annotations

from typing import Any, Final

from dragoman.config.interchange import variables
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
from dragoman.config.interchange.manners import Manner
from dragoman.config.interchange.notes import Page, Unusable

_SIGN_IN: Final = ("clientId", "clientSecret", "callbackPort", "authServerMetadataUrl", "scopes", "xaa")
_OURS_ALONE: Final = frozenset({"cwd", "protocol", "enabledTools", "disabledTools", "headersHelper"})
"""Fields that even a host with our form does not know, unless its row says so."""


def entry_out(manner: Manner, given: Any, page: Page) -> dict[str, Any]:
    """Our entry in the host's form, or `Unusable`."""
    entry = as_entry(given)
    kind = kind_of(entry, ("url",)) or "http"
    taken = {"type"}
    theirs: dict[str, Any] = {"type": kind} if manner.typed == "always" else {}
    if kind == "stdio":
        _program_out(manner, entry, theirs, page, taken)
    else:
        _address_out(manner, entry, kind, theirs, page, taken)
    _shared_out(manner, entry, theirs, page, taken)
    _sign_out(manner, entry, kind, theirs, page, taken)
    _unsaid(manner, entry, theirs, page, taken)
    return theirs


def _program_out(manner: Manner, entry: Entry, theirs: dict[str, Any], page: Page, taken: set[str]) -> None:
    taken |= {"command", "args", "env"}
    theirs["command"] = _write(manner, needed_text(entry, "command"), page, "command")
    if entry.get("args") is not None:
        theirs["args"] = [
            _write(manner, item, page, f"args[{number}]")
            for number, item in enumerate(texts_of(entry["args"], "args"))
        ]
    if entry.get("env") is not None:
        theirs["env"] = _write_map(manner, entry["env"], page, "env")


def _address_out(
    manner: Manner, entry: Entry, kind: str, theirs: dict[str, Any], page: Page, taken: set[str]
) -> None:
    if kind not in manner.spelled:
        raise Unusable("type", f"{manner.host} cannot reach servers of this type; the server is left out")
    taken |= {"url", "headers"}
    field, url = manner.spelled[kind], address_of(entry, "url")
    meant = manner.addresses[field]
    written = _write(manner, url, page, "url")
    if (meant if meant != "" else kind_of_address(written)) != kind:
        if manner.typed == "never":
            page.say("type", f"{manner.host} detects by itself whether a URL is HTTP or SSE")
        else:
            theirs["type"] = kind
    theirs[field] = written
    if entry.get("headers") is not None:
        theirs["headers"] = _write_map(manner, entry["headers"], page, "headers")


def _shared_out(manner: Manner, entry: Entry, theirs: dict[str, Any], page: Page, taken: set[str]) -> None:
    for field, name in manner.fields.items():
        value = entry.get(field)
        taken.add(field)
        if value is None:
            continue
        if field in TOOL_LISTS:
            theirs[name] = texts_of(value, field)
        elif field == "timeout":
            _timeout_out(manner, value, name, theirs, page)
        elif (text := variables.outgoing(manner.dialect, text_of(value, field), page, field)) is not None:
            theirs[name] = text


def _timeout_out(manner: Manner, value: Any, name: str, theirs: dict[str, Any], page: Page) -> None:
    limit = milliseconds(value)
    if limit is None:
        page.say("timeout", "the time limit cannot be used and is left out")
        return
    if limit < manner.shortest_timeout:
        page.say("timeout", f"{manner.host} ignores time limits below {manner.shortest_timeout} ms")
    theirs[name] = limit


def _sign_out(
    manner: Manner, entry: Entry, kind: str, theirs: dict[str, Any], page: Page, taken: set[str]
) -> None:
    sign_in = manner.sign_in
    if sign_in is None or kind == "stdio" or entry.get("oauth") is None:
        return
    taken.add("oauth")
    written: dict[str, Any] = {}
    for name, value in as_entry(entry["oauth"]).items():
        if name not in sign_in.names and (name in _SIGN_IN or not manner.keeps_unknown):
            if not is_idle(value):
                page.say(f"oauth.{name}", f"{manner.host} has no such field; it is left out")
            continue
        if name == "scopes":
            scopes = scopes_of(value, "oauth.scopes")
            written[sign_in.names[name]] = " ".join(scopes) if sign_in.scopes_are_text else scopes
        elif isinstance(value, str):
            written[sign_in.names.get(name, name)] = _write(manner, value, page, f"oauth.{name}")
        else:
            written[sign_in.names.get(name, name)] = value
    if written:
        theirs[sign_in.field] = written


def _unsaid(manner: Manner, entry: Entry, theirs: dict[str, Any], page: Page, taken: set[str]) -> None:
    for field, value in entry.items():
        if field in taken or says_nothing(field, value):
            continue
        if manner.keeps_unknown and field not in _OURS_ALONE:
            theirs[field] = value
        else:
            page.say(field, f"{manner.host} has no such field; it is left out")


def _write(manner: Manner, text: str, page: Page, field: str) -> str:
    written = variables.outgoing(manner.dialect, text, page, field)
    if written is None:
        raise Unusable(field, f"{manner.host} knows no variables; the server is left out")
    return written


def _write_map(manner: Manner, value: Any, page: Page, field: str) -> dict[str, str]:
    """Texts by name; one that needs a variable the host cannot look up is left out."""
    written: dict[str, str] = {}
    for name, text in map_of(value, field).items():
        theirs = variables.outgoing(manner.dialect, text, page, f"{field}.{name}")
        if theirs is None:
            page.say(f"{field}.{name}", f"{manner.host} knows no variables: add the value there yourself")
        else:
            written[name] = theirs
    return written
