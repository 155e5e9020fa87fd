"""Notes about what could not be converted, and checks of single fields that another program wrote.

A note contains names of servers, fields and variables, and never a value of an entry; text from a file is
made visible in it. Types of fields are checked, and a number where text is expected becomes text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, cast

from msgspec import Struct

from dragoman.cleaning import one_line
from dragoman.config.noted_fields import is_empty_value
from dragoman.transport_types import TYPE_ALIASES

_NAME_LIMIT = 200
_TEXT_LIMIT = 500


class Note(Struct, frozen=True, kw_only=True):
    """A note about something that was not converted, was converted with a loss, or should be checked before
    use."""

    server: str | None
    field: str | None
    """The name of the field in the file that was read, or in Dragoman's entry that was written."""
    text: str


class CannotTranslate(Exception):
    """The server cannot be converted. Ends the conversion of one entry; never raised outside this package."""

    def __init__(self, field: str | None, reason: str) -> None:
        super().__init__(reason)
        self.field = field
        self.reason = reason


Noting = Callable[[str | None, str], None]
"""Adds a note about a field of one server."""


def ignore_note(field: str | None, text: str) -> None:
    """A `Noting` for conversions whose notes are not needed."""


class Notes:
    """Collects notes; the same thing is noted once."""

    def __init__(self) -> None:
        self._notes: dict[Note, None] = {}

    def add(self, server: str | None, field: str | None, text: str) -> None:
        note = Note(server=_short(server), field=_short(field), text=one_line(text, _TEXT_LIMIT))
        self._notes[note] = None

    def extend(self, other: Notes) -> None:
        self._notes.update(other._notes)

    def about(self, server: str) -> Noting:
        return partial(self.add, server)

    def all(self) -> tuple[Note, ...]:
        return tuple(self._notes)


def _short(name: str | None) -> str | None:
    return None if name is None else one_line(name, _NAME_LIMIT)


Entry = Mapping[str, Any]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SCHEMES: Final = ("http", "https", "ws", "wss")
_SSE_ADDRESS: Final = re.compile(r"[^?#]*/sse/?(?:[?#].*)?", re.DOTALL)

TYPES: Final = {**TYPE_ALIASES, "local": "stdio"}
"""Other names of transports → Dragoman's."""


TOOL_LISTS: Final = ("enabledTools", "disabledTools")


def as_entry(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise CannotTranslate(None, "the entry is not an object")
    return {str(key): item for key, item in cast("Mapping[Any, Any]", value).items()}


def text_of(value: Any, field: str) -> str:
    """A text; a number or a truth value is written out, as hosts that pass it to a program do."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise CannotTranslate(field, f"{field} is not a text")
    return value


def address_of(entry: Entry, field: str) -> str:
    """A usable URL: http, https, ws or wss, or one that begins with a variable."""
    url = needed_text(entry, field)
    scheme = _SCHEME.match(url)
    if scheme is not None and scheme.group(1).lower() not in _SCHEMES:
        raise CannotTranslate(field, "URLs of this kind are not supported")
    return url


def needed_text(entry: Entry, field: str) -> str:
    value = entry.get(field)
    if not isinstance(value, str) or not value:
        raise CannotTranslate(field, f"{field} is not a text" if field in entry else f"there is no {field}")
    return value


def texts_of(value: Any, field: str) -> list[str]:
    if not isinstance(value, list | tuple):
        raise CannotTranslate(field, f"{field} is not a list")
    return [text_of(item, f"{field}[{number}]") for number, item in enumerate(cast("list[Any]", value))]


def map_of(value: Any, field: str) -> dict[str, str]:
    """Texts by name. A null means "not set" to the hosts that allow it, and is left out."""
    if not isinstance(value, Mapping):
        raise CannotTranslate(field, f"{field} is not an object")
    pairs = cast("Mapping[Any, Any]", value).items()
    return {str(key): text_of(item, f"{field}.{key}") for key, item in pairs if item is not None}


def kind_of(entry: Entry, remote: tuple[str, ...]) -> str | None:
    """The transport that an entry names; None if it has an address and names none."""
    kind = entry.get("type")
    if isinstance(kind, str) and kind:
        return TYPES.get(kind, kind)
    if entry.get("command") is not None:
        return "stdio"
    if any(entry.get(field) is not None for field in remote):
        return None
    raise CannotTranslate(None, "there is neither a command nor a URL")


def kind_of_address(url: str) -> str:
    """The transport that a host without other information would most likely find at the address."""
    return "sse" if _SSE_ADDRESS.fullmatch(url) else "http"


def milliseconds(value: Any) -> int | None:
    """A time limit that can be used, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        return None
    return max(1, round(value))


def time_limit(value: Any, field: str, note: Noting) -> int | None:
    """Like `milliseconds`; a value that cannot be used is noted."""
    limit = milliseconds(value)
    if limit is None:
        note(field, "the time limit cannot be used and is left out")
    return limit


def scopes_of(value: Any, field: str) -> list[str]:
    """OAuth scopes; some hosts write them as a list, some as one text."""
    return value.split() if isinstance(value, str) else texts_of(value, field)


def is_default(field: str, value: Any) -> bool:
    """Whether a field of Dragoman has its default value. An empty list of enabled tools is not the default:
    it offers no tools."""
    if field == "enabledTools":
        return value is None
    return is_empty_value(value) or (field, value) == ("protocol", "auto")
