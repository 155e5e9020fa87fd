"""Reads single fields of an entry that another program wrote.

Types are checked, and a number where text is expected becomes text. A reason names the field and never
contains its value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from dragoman.config.interchange.notes import Unusable
from dragoman.transport_types import TYPE_ALIASES

Entry = Mapping[str, Any]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SCHEMES: Final = ("http", "https", "ws", "wss")
_SSE_ADDRESS: Final = re.compile(r"[^?#]*/sse/?(?:[?#].*)?", re.DOTALL)

TYPES: Final = {**TYPE_ALIASES, "local": "stdio"}
"""Other words for a transport → ours."""


TOOL_LISTS: Final = ("enabledTools", "disabledTools")


def as_entry(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise Unusable(None, "the entry is not an object")
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
        raise Unusable(field, f"{field} is not a text")
    return value


def address_of(entry: Entry, field: str) -> str:
    """An address that could be reached: of the web, or beginning with a variable."""
    url = needed_text(entry, field)
    scheme = _SCHEME.match(url)
    if scheme is not None and scheme.group(1).lower() not in _SCHEMES:
        raise Unusable(field, "URLs of this kind are not supported")
    return url


def needed_text(entry: Entry, field: str) -> str:
    value = entry.get(field)
    if not isinstance(value, str) or not value:
        raise Unusable(field, f"{field} is not a text" if field in entry else f"there is no {field}")
    return value


def texts_of(value: Any, field: str) -> list[str]:
    if not isinstance(value, list | tuple):
        raise Unusable(field, f"{field} is not a list")
    return [text_of(item, f"{field}[{number}]") for number, item in enumerate(cast("list[Any]", value))]


def map_of(value: Any, field: str) -> dict[str, str]:
    """Texts by name. A null means "not set" to the hosts that allow it, and is left out."""
    if not isinstance(value, Mapping):
        raise Unusable(field, f"{field} is not an object")
    pairs = cast("Mapping[Any, Any]", value).items()
    return {str(key): text_of(item, f"{field}.{key}") for key, item in pairs if item is not None}


def kind_of(entry: Entry, remote: tuple[str, ...]) -> str | None:
    """The transport an entry says it uses; None if it has an address and says nothing."""
    said = entry.get("type")
    if isinstance(said, str) and said:
        return TYPES.get(said, said)
    if entry.get("command") is not None:
        return "stdio"
    if any(entry.get(field) is not None for field in remote):
        return None
    raise Unusable(None, "there is neither a command nor a URL")


def kind_of_address(url: str) -> str:
    """What a host that is told nothing more would most likely find at the address."""
    return "sse" if _SSE_ADDRESS.fullmatch(url) else "http"


def milliseconds(value: Any) -> int | None:
    """A time limit that can be used, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        return None
    return max(1, round(value))


def scopes_of(value: Any, field: str) -> list[str]:
    """OAuth scopes, which some write as a list and some as one text."""
    return value.split() if isinstance(value, str) else texts_of(value, field)


def is_idle(value: Any) -> bool:
    """Says nothing: a field like this is left out without a word."""
    return value is None or value is False or value == "" or value == [] or value == {}


def says_nothing(field: str, value: Any) -> bool:
    """The same for a field of ours. An empty list of enabled tools is not idle: it offers none."""
    if field == "enabledTools":
        return value is None
    return is_idle(value) or (field, value) == ("protocol", "auto")
