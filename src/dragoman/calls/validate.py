"""Validates arguments and results with the schemas of the tool.

Compiles and caches validators. Schemas come from servers and are untrusted: nothing is fetched for a `$ref`,
patterns run in bounded time, and a schema that cannot be compiled or would take too long is not used; the
call is made, and the server validates the arguments itself. `schema_cost` computes beforehand how long a
check can take. A check that takes too long is not run in a thread either: the validator holds the
interpreter's lock, so no other thread could run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, cast

from msgspec import ValidationError, convert

from dragoman.calls.schema_cost import (
    BACKTRACK_LIMIT,
    ON_ONE_VALUE,
    WORK_LIMIT,
    CheckCost,
    DocumentCost,
    cost_of_document,
    extra_of,
)
from dragoman.catalog.tools import BuiltinTool, Tool
from dragoman.cleaning import one_line
from dragoman.errors import InvalidArguments

PROBLEM_LIMIT: Final = 5
PROBLEM_CHARACTERS: Final = 300
SCHEMA_LIMIT_BYTES: Final = 256 * 1024
PATTERNS_LIMIT_BYTES: Final = 8 * 1024 * 1024
"""The size limit of all compiled patterns of one schema; compiling them takes about 0.1 s."""
LARGE: Final = ON_ONE_VALUE
"""Weight from which a value is checked off the loop: its parts, its text in pieces of 1 000 characters, and
its numbers of 64 bits or more by their size."""
NOT_CHECKED: Final = "structuredContent was not checked: it would take too long"
TOO_MANY_PROBLEMS: Final = "they do not fit its schema; to find out where would take too long"


class _Validator(Protocol):
    def is_valid(self, instance: Any, /) -> bool: ...
    def iter_errors(self, instance: Any, /) -> Iterator[Any]: ...
    def validate(self, instance: Any, /) -> None: ...


_NOT_JSON: Final = (TypeError, ValueError, RecursionError)
"""What the validator raises for values that JSON cannot express."""


class _TooMuch(Exception):
    """It would take too long to check this."""


class _Check(NamedTuple):
    tool: Tool
    validator: _Validator | None
    cost: DocumentCost = DocumentCost()
    is_low: bool = False
    """Whether small values need not be measured."""

    def problems(self, value: Any, *, is_small: bool = False) -> tuple[str, ...]:
        """What does not fit, each with its place; `_TooMuch` if checking would take too long."""
        if self.validator is None:
            return ()
        try:
            if not (is_small and self.is_low) and self.cost.of(value).judging > WORK_LIMIT:
                raise _TooMuch
            if self.validator.is_valid(value):
                return ()
            return self._described(self.validator, value, self.cost.of(value))
        except _NOT_JSON as error:
            return (f"cannot be written as JSON: {error}",)

    def _described(self, validator: _Validator, value: Any, work: CheckCost) -> tuple[str, ...]:
        if work.all_errors <= WORK_LIMIT:
            errors = [error for error in validator.iter_errors(value) if not _gave_up(error)]
            return tuple([_in_words(error) for error in islice(errors, PROBLEM_LIMIT)])
        # The description would contain every error of each choice, and the whole of a large text.
        if self.cost.has_choices or work.first_error > WORK_LIMIT:
            return (TOO_MANY_PROBLEMS,)
        return _first_problem(validator, value)


def _first_problem(validator: _Validator, value: Any) -> tuple[str, ...]:
    import jsonschema_rs

    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        return () if _gave_up(error) else (_in_words(error),)
    return ()


class _Input:
    """The input schema of a tool.

    Many only name the type of each argument. They need no validator, which takes 7 MB of memory: it is loaded
    for the first arguments that do not certainly fit.
    """

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        too_large = tool.input_schema_bytes > SCHEMA_LIMIT_BYTES
        schema = {} if too_large else tool.input_schema
        # A schema that only requires an object checks nothing.
        self._schema = schema if schema.keys() & _CONSTRAINING else {}
        self.simple = _simple(self._schema)
        """The type of each argument and which are required, if the schema contains nothing else."""
        self.completes = isinstance(tool, BuiltinTool) and tool.complete is not None

    @cached_property
    def check(self) -> _Check:
        return _compile(self.tool, self._schema)


def _simple(schema: Mapping[str, Any]) -> tuple[Mapping[str, type], frozenset[str]] | None:
    """The type of each argument and which are required, if the schema contains nothing else."""
    if not schema.keys() <= _SIMPLE or schema.get("type", "object") != "object":
        return None
    try:
        parts = convert(schema.get("properties", {}), dict[str, dict[str, Any]])
        required = convert(schema.get("required", []), frozenset[str])
        if all(part.keys() <= _SIMPLE_PART for part in parts.values()):
            return {name: _TYPES[part["type"]] for name, part in parts.items()}, required
    except (ValidationError, KeyError, TypeError):  # another type, several, or none
        pass
    return None


_COMMENTS: Final = frozenset({"title", "description", "default", "examples", "$comment"})
_SIMPLE_PART: Final = _COMMENTS | {"type"}
_SIMPLE: Final = _COMMENTS | {"type", "properties", "required", "additionalProperties", "$schema"}
_TYPES: Final[Mapping[str, type]] = {"string": str, "integer": int, "number": int, "boolean": bool}
"""Values of these types certainly are of the type in JSON Schema; others may be, too."""


class Checker:
    def __init__(self) -> None:
        self._inputs: dict[str, _Input] = {}
        self._outputs: dict[str, _Check] = {}

    def quick_copy(
        self, tool: Tool, arguments: Mapping[str, Any], *, is_complete: bool = False
    ) -> dict[str, Any] | None:
        """A copy of arguments that certainly fit, as most do; None: `check` has to decide. `is_complete`: the
        tool has completed them, if it can."""
        known = self._inputs.get(tool.name)
        if known is None or known.tool is not tool:  # never seen, or listed again since
            known = self._inputs[tool.name] = _Input(tool)
        if known.simple is None or (known.completes and not is_complete):
            return None
        types, required = known.simple
        copy = dict(arguments)
        for name in required:
            if name not in copy:
                return None
        for name, value in copy.items():
            if types.get(name) is not type(value):
                return None
        return copy

    def check(self, tool: Tool, arguments: Mapping[str, Any]) -> bool:
        """Raises InvalidArguments, naming each argument that does not fit. False: more is to be done, because
        they are large or the tool can complete them; `check_large` is needed."""
        if self.quick_copy(tool, arguments) is not None:
            return True
        known = self._inputs[tool.name]
        if known.completes or is_large(arguments):
            return False
        if problems := _problems(known.check, arguments, True):
            raise InvalidArguments(tool.server, tool.name, problems)
        return True

    async def check_large(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """The same for what takes long to check."""
        if self.quick_copy(tool, arguments, is_complete=True) is not None:
            return
        check = self._inputs[tool.name].check
        if check.validator is None:
            return
        if problems := await asyncio.to_thread(_problems, check, arguments, False):
            raise InvalidArguments(tool.server, tool.name, problems)

    def output_problems(self, tool: Tool, structured: Any) -> tuple[str, ...]:
        """How `structuredContent` does not fit the tool's output schema, or that it is unknown."""
        known = self._outputs.get(tool.name)
        if known is None or known.tool is not tool:
            known = self._outputs[tool.name] = _compile(tool, _output_schema(tool))
        try:
            return known.problems(structured)
        except _TooMuch:
            return (NOT_CHECKED,)


def _problems(known: _Check, arguments: Mapping[str, Any], is_small: bool) -> tuple[str, ...]:
    """What does not fit; nothing where checking would take too long: then the server decides."""
    try:
        return known.problems(arguments if type(arguments) is dict else dict(arguments), is_small=is_small)
    except _TooMuch:
        return ()


def is_large(arguments: Mapping[str, Any]) -> bool:
    for value in arguments.values():  # the common case, found quickly: a few short values
        kind = cast("type[Any]", type(value))
        if kind not in _SCALARS or (kind is str and len(value) > LARGE) or (kind is int and extra_of(value)):
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
        elif isinstance(item, int):
            found += extra_of(item)
        elif isinstance(item, Mapping):
            waiting.extend(cast("Mapping[str, Any]", item).values())
        elif isinstance(item, list | tuple):
            waiting.extend(cast("list[Any]", item))
    return found


def _output_schema(tool: Tool) -> dict[str, Any]:
    too_large = memoryview(tool.definition.output_schema).nbytes > SCHEMA_LIMIT_BYTES
    return {} if too_large else tool.output_schema or {}


def _compile(tool: Tool, schema: dict[str, Any]) -> _Check:
    if not schema or (cost := cost_of_document(schema)) is None:
        return _Check(tool, None)
    import jsonschema_rs  # loaded when it is first needed: see `_Input`

    try:
        each_bytes = PATTERNS_LIMIT_BYTES // max(1, cost.pattern_count)
        options = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT, size_limit=each_bytes)
        # Most dialects take `format` for a comment, and some formats take long to check.
        validator = jsonschema_rs.validator_for(
            schema, retriever=_refuse, pattern_options=options, validate_formats=False
        )
        return _Check(tool, validator, cost, cost.is_low)
    except Exception:  # border: whatever a hostile schema does to the compiler, the call is made unvalidated
        return _Check(tool, None)


_CONSTRAINING: Final = frozenset(
    {"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
     "maxProperties", "dependentRequired", "dependentSchemas", "allOf", "anyOf", "oneOf", "not", "if", "$ref",
     "unevaluatedProperties", "enum", "const"}
)  # fmt: skip


def _refuse(uri: str) -> Any:
    raise ValueError(f"schemas are not fetched: {uri}")


def _gave_up(error: Any) -> bool:
    """Whether a pattern was left unmatched because it backtracks without end: that proves nothing."""
    return type(error.kind).__name__.endswith("BacktrackLimitExceeded")


def _in_words(error: Any) -> str:
    place = ".".join(str(part) for part in error.instance_path)
    message = one_line(str(error.message), PROBLEM_CHARACTERS)
    return f"{one_line(place, PROBLEM_CHARACTERS)}: {message}" if place else message
