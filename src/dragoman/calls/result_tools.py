"""The built-in tool by which a model reads results that were too large to be shown.

Defines what a model may ask about a saved result and the form of the answers. No permission is needed,
because reading a result that this host saved changes nothing and sends nothing. `content/store.py` finds the
answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman.catalog.tools import BuiltinResult, BuiltinTool
from dragoman.content.budget import ResultLimits
from dragoman.content.store import ANSWER_LIMIT, BadQuestion, NotSaved, ResultStore
from dragoman.content.tokens import MOST_PER_CHARACTER
from dragoman.errors import InvalidArguments

NAME: Final = "read_result"
NOTE_CHARACTERS: Final = 200
"""Characters that are reserved for the sentence about how to read on."""

_WAYS: Final[dict[str, Any]] = {
    "lines": {
        "type": "string",
        "maxLength": 40,
        "description": 'Lines by number, from 1: "100-200", "100-" or "7".',
    },
    "grep": {
        "type": "string",
        "maxLength": 1000,
        "description": "Lines that contain these words, with their numbers. "
        'Between slashes it is a regular expression: "/err(or)?/".',
    },
    "offset": {"type": "integer", "minimum": 0, "description": "Text from this byte on."},
}
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "handle": {
            "type": "string",
            "maxLength": 100,
            "description": "The result's handle, as it was given.",
        },
        **_WAYS,
    },
    "required": ["handle"],
    "additionalProperties": False,
}


def result_tool(store: ResultStore, limits: Callable[[], ResultLimits] = ResultLimits) -> BuiltinTool:
    """`read_result`. Its answers fit the limits, so that they are never saved in turn."""

    async def read(arguments: Mapping[str, Any]) -> BuiltinResult:
        question = {way: arguments[way] for way in _WAYS if arguments.get(way) is not None}
        if len(question) > 1:
            raise _wrong(f"give one of {', '.join(_WAYS)}, not several")
        try:
            return await store.ask(arguments["handle"], question, _answer_limit(limits()))
        except (BadQuestion, NotSaved) as error:
            raise _wrong(str(error)) from None

    return BuiltinTool(
        NAME,
        read,
        title="Read a large result",
        description="Reads on in a tool's result that was too large to be shown whole. Give the handle that "
        "was given with it, and one of lines, grep or offset; the handle alone reads the beginning.",
        input_schema=_SCHEMA,
        annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
        needs_permission=False,
    )


def _answer_limit(limits: ResultLimits) -> int:
    room = min(limits.characters, limits.tokens // MOST_PER_CHARACTER) - NOTE_CHARACTERS
    return max(NOTE_CHARACTERS, min(ANSWER_LIMIT, room))


def _wrong(why: str) -> InvalidArguments:
    return InvalidArguments("", NAME, (why,))
