"""Arguments against the tool's own schema, before anything is sent.

I own: compiling and keeping validators. Schemas come from servers and are untrusted: nothing is
fetched for a `$ref`, patterns run in bounded time, and a schema that cannot be compiled or would take
for ever validates nothing rather than blocking the tool (the server still judges).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol

from dragoman.calls.schema_cost import fan_out, is_affordable
from dragoman.catalog.tools import Tool
from dragoman.errors import InvalidArguments

PROBLEM_LIMIT: Final = 5
SCHEMA_LIMIT_BYTES: Final = 256 * 1024


class _Validator(Protocol):
    def is_valid(self, instance: Any, /) -> bool: ...
    def iter_errors(self, instance: Any, /) -> Any: ...


class _Check(NamedTuple):
    tool: Tool
    validator: _Validator | None
    fan_out: int = 1


class ArgumentChecker:
    def __init__(self) -> None:
        self._checks: dict[str, _Check] = {}

    def check(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Raises InvalidArguments, naming each argument that does not fit."""
        known = self._checks.get(tool.name)
        if known is None or known.tool is not tool:  # never seen, or listed anew since
            known = self._checks[tool.name] = _compile(tool)
        validator = known.validator
        if validator is None:
            return
        arguments = dict(arguments)
        try:
            if not is_affordable(known.fan_out, arguments) or validator.is_valid(arguments):
                return
            problems = [_in_words(error) for error in islice(validator.iter_errors(arguments), PROBLEM_LIMIT)]
        except (TypeError, ValueError, RecursionError) as error:  # what JSON has no words for
            problems = [f"cannot be written as JSON: {error}"]
        raise InvalidArguments(tool.server, tool.name, tuple(problems))


def _compile(tool: Tool) -> _Check:
    if tool.input_schema_bytes > SCHEMA_LIMIT_BYTES:
        return _Check(tool, None)
    schema = tool.input_schema
    if not schema.keys() & _CONSTRAINING or (fanned := fan_out(schema)) is None:
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
    return f"{place}: {error.message}" if place else str(error.message)
