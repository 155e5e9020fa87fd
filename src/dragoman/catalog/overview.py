"""The text for a model about tools that it has not been given.

Contains the short overview of what can be found, and the text that describes a found tool; both have a limit.
`tools.py` has cleaned the text of servers. The toolbox decides when the text is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from dragoman.catalog.tokens import estimate
from dragoman.catalog.tools import Tool
from dragoman.cleaning import one_line

SCHEMA_CHARACTERS: Final = 20_000
NAMES_SHOWN: Final = 20
SERVER_CHARACTERS: Final = 80


def overview(tools: Sequence[Tool], limit_tokens: int) -> str:
    """The names of tools by server if they fit, else how many each server has."""
    by_server: dict[str, list[str]] = {}
    for tool in tools:
        server = one_line(tool.server or "built in", SERVER_CHARACTERS)
        by_server.setdefault(server, []).append(tool.name)
    names = "\n".join(f"{server}: {', '.join(named)}" for server, named in by_server.items())
    if estimate(names) <= limit_tokens:
        return names
    return _bounded([f"{server} ({len(named)})" for server, named in by_server.items()], limit_tokens)


def _bounded(parts: Sequence[str], limit_tokens: int) -> str:
    """As many items as there is room for, and the number of the others."""
    room = limit_tokens
    for number, part in enumerate(parts):
        room -= estimate(part) + 1
        if room < 0:
            return ", ".join([*parts[:number], f"and {len(parts) - number} more servers"])
    return ", ".join(parts)


def described(tool: Tool, *, was_loaded: bool = False) -> str:
    """A found tool in one line of JSON, so that no description can pretend to be another tool's."""
    schema = msgspec.json.encode(tool.model_schema)
    fits = len(schema) <= SCHEMA_CHARACTERS
    entry = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": msgspec.Raw(schema) if fits else "too long to be shown here; it comes with the tool",
    }
    return msgspec.json.encode(entry | ({"already_loaded": True} if was_loaded else {})).decode()


def enumerated(names: Sequence[str]) -> str:
    """Some of the names, and the number of the others."""
    shown = [one_line(name, 200) for name in names[:NAMES_SHOWN]]
    more = [f"and {len(names) - NAMES_SHOWN} more"] if len(names) > NAMES_SHOWN else []
    return ", ".join([*shown, *more])
