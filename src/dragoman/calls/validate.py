"""Arguments and results against the tool's own schemas.

I own: compiling and keeping validators, and that checking ends soon. Schemas come from servers and are
untrusted: nothing is fetched for a `$ref`, patterns run in bounded time, and a schema that cannot be
compiled or would take for ever validates nothing rather than blocking the tool (the server still judges).
Large values are checked in a thread, and huge ones not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, cast

from dragoman.calls.schema_cost import fan_out, is_affordable
from dragoman.catalog.tools import Tool
from dragoman.cleaning import one_line
from dragoman.errors import InvalidArguments

PROBLEM_LIMIT: Final = 5
PROBLEM_CHARACTERS: Final = 300
SCHEMA_LIMIT_BYTES: Final = 256 * 1024
LARGE: Final = 2_000
"""Weight from which a value is checked off the loop: its parts, and its text in pieces of 1 000
characters."""
HUGE: Final = 500_000
"""Weight from which it is not checked at all."""


class _Validator(Protocol):
    def is_valid(self, instance: Any, /) -> bool: ...
    def iter_errors(self, instance: Any, /) -> Iterator[Any]: ...


class _Check(NamedTuple):
    tool: Tool
    validator: _Validator | None
    fan_out: int = 1

    def problems(self, value: Any) -> tuple[str, ...]:
        """What does not fit, each with its place."""
        if self.validator is None:
            return ()
        try:
            if not is_affordable(self.fan_out, value) or self.validator.is_valid(value):
                return ()
            found = islice(self.validator.iter_errors(value), PROBLEM_LIMIT)
            return tuple([_in_words(error) for error in found])
        except (TypeError, ValueError, RecursionError) as error:  # what JSON has no words for
            return (f"cannot be written as JSON: {error}",)


class Checker:
    def __init__(self) -> None:
        self._inputs: dict[str, _Check] = {}
        self._outputs: dict[str, _Check] = {}

    def check(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Raises InvalidArguments, naming each argument that does not fit."""
        known = self._input(tool)
        if known.validator is not None and (problems := known.problems(dict(arguments))):
            raise InvalidArguments(tool.server, tool.name, problems)

    async def check_large(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """The same for what would hold up everybody else."""
        known = self._input(tool)
        if known.validator is None or weight(arguments, HUGE) >= HUGE:
            return
        if problems := await asyncio.to_thread(known.problems, dict(arguments)):
            raise InvalidArguments(tool.server, tool.name, problems)

    def output_problems(self, tool: Tool, structured: Any) -> tuple[str, ...]:
        """How `structuredContent` does not fit the tool's output schema."""
        known = self._outputs.get(tool.name)
        if known is None or known.tool is not tool:
            known = self._outputs[tool.name] = _compile(tool, _output_schema(tool))
        return known.problems(structured) if weight(structured, HUGE) < HUGE else ()

    def _input(self, tool: Tool) -> _Check:
        known = self._inputs.get(tool.name)
        if known is None or known.tool is not tool:  # never seen, or listed anew since
            too_large = tool.input_schema_bytes > SCHEMA_LIMIT_BYTES
            schema = {} if too_large else tool.input_schema
            # What only says that arguments are an object says nothing.
            known = self._inputs[tool.name] = _compile(tool, schema if schema.keys() & _CONSTRAINING else {})
        return known


def is_large(arguments: Mapping[str, Any]) -> bool:
    for value in arguments.values():  # the common case, found quickly: a few short values
        if type(value) not in _SCALARS or (type(value) is str and len(value) > LARGE):
            return weight(arguments, LARGE) >= LARGE
    return len(arguments) >= LARGE


_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def weight(value: Any, limit: int) -> int:
    """About how much work a value is; counting ends at the limit."""
    found, waiting = 0, [value]
    while waiting and found < limit:
        item = waiting.pop()
        found += 1
        if isinstance(item, str):
            found += len(item) // 1000
        elif isinstance(item, Mapping):
            waiting.extend(cast("Mapping[str, Any]", item).values())
        elif isinstance(item, list | tuple):
            waiting.extend(cast("list[Any]", item))
    return found


def _output_schema(tool: Tool) -> dict[str, Any]:
    too_large = memoryview(tool.definition.output_schema).nbytes > SCHEMA_LIMIT_BYTES
    return {} if too_large else tool.output_schema or {}


def _compile(tool: Tool, schema: dict[str, Any]) -> _Check:
    if not schema or (fanned := fan_out(schema)) is None:
        return _Check(tool, None)
    import jsonschema_rs  # loaded with the first call that has arguments to check

    try:
        return _Check(tool, jsonschema_rs.validator_for(schema, retriever=_refuse), fanned)
    except Exception:  # border: whatever a hostile schema does to the compiler, the call goes on unvalidated
        return _Check(tool, None)


_CONSTRAINING: Final = frozenset(
    {"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
     "maxProperties", "dependentRequired", "dependentSchemas", "allOf", "anyOf", "oneOf", "not", "if", "$ref",
     "unevaluatedProperties", "enum", "const"}
)  # fmt: skip


def _refuse(uri: str) -> Any:
    raise ValueError(f"schemas are not fetched: {uri}")


def _in_words(error: Any) -> str:
    place = ".".join(str(part) for part in error.instance_path)
    message = one_line(str(error.message), PROBLEM_CHARACTERS)
    return f"{one_line(place, PROBLEM_CHARACTERS)}: {message}" if place else message
