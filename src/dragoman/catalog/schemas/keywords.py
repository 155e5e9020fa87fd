"""The keywords of a schema that are passed to a model. Pure.

Contains the table of these keywords with the form that each must have, and cleans texts and values in them. A
keyword in another form is left out, because one invalid keyword makes an API refuse a request with all its
tools. Any value is handled in bounded time, and the result has no invisible characters. `rewriting.py`
handles keywords that contain schemas.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, cast

from dragoman.catalog.texts import DESCRIPTION_LIMIT, TITLE_LIMIT
from dragoman.cleaning import for_model, is_safe

Json = dict[str, Any]

PATTERN_LIMIT: Final = 500
EXAMPLE_LIMIT: Final = 10
VALUE_LIMIT: Final = 200
"""The maximum number of parts of one default or example."""
ENUM_VALUE_LIMIT: Final = 20
VALUE_DEPTH: Final = 8

TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
GONE: Final = object()
"""Marks a value that cannot be passed on."""

_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9+./_-]{0,63}")


def text(value: Any, limit: int = DESCRIPTION_LIMIT) -> Any:
    return for_model(value, limit) if isinstance(value, str) else GONE


def type_of(value: Any) -> str:
    """The JSON Schema name of the value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    for kind, name in ((int, "integer"), (float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "object"


def types_of(values: list[Any]) -> str | list[str]:
    """The type of all the values together."""
    names = list(dict.fromkeys(type_of(value) for value in values))
    if "number" in names:
        names = [name for name in names if name != "integer"]
    return names[0] if len(names) == 1 else names


def same(value: Any) -> Any:
    """A key that is equal exactly for equal JSON values."""
    if isinstance(value, dict):
        pairs = cast("Json", value).items()
        return ("object", frozenset((name, same(inner)) for name, inner in pairs))
    if isinstance(value, list):
        return ("array", tuple([same(inner) for inner in cast("list[Any]", value)]))
    return (isinstance(value, bool), value)


def size(value: Any, limit: int) -> int:
    """How many parts the value has; counting stops soon after the limit."""
    count, waiting = 0, [value]
    while waiting and count <= limit:
        current = waiting.pop()
        count += 1
        if isinstance(current, dict):
            count += len(cast("Json", current))
            waiting.extend(list(cast("Json", current).values())[:limit])
        elif isinstance(current, list):
            waiting.extend(cast("list[Any]", current)[:limit])
    return count


# --- values ---


def _value(value: Any, limit: int = VALUE_LIMIT) -> Any:
    return _cleaned(value, VALUE_DEPTH) if size(value, limit) <= limit else GONE


def _cleaned(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list | dict):
        return _cleaned_container(cast("Json | list[Any]", value), depth - 1) if depth else GONE
    return value if value is None or isinstance(value, bool) else _number(value)


def _cleaned_container(value: Json | list[Any], depth: int) -> Any:
    if isinstance(value, list):
        return [item for item in (_cleaned(item, depth) for item in value) if item is not GONE]
    pairs = ((for_model(str(name), 100), _cleaned(inner, depth)) for name, inner in value.items())
    return {name: inner for name, inner in pairs if inner is not GONE}


def _examples(value: Any) -> Any:
    if not isinstance(value, list):
        return GONE
    examples = [_value(item) for item in cast("list[Any]", value)[:EXAMPLE_LIMIT]]
    return [item for item in examples if item is not GONE] or GONE


def enum(value: Any) -> Any:
    """The values that a model can write exactly; others are left out."""
    if not isinstance(value, list):
        return GONE
    kept: dict[Any, Any] = {}
    for item in cast("list[Any]", value):
        cleaned = _value(item, ENUM_VALUE_LIMIT)
        if cleaned is not GONE and (isinstance(item, int | float) or cleaned == item):
            kept.setdefault(same(cleaned), cleaned)
    return list(kept.values()) or GONE


# --- single keywords ---


def _type(value: Any) -> Any:
    if isinstance(value, str):
        return value if value in TYPES else GONE
    if not isinstance(value, list):
        return GONE
    names = cast("list[Any]", value)
    known = list(dict.fromkeys(name for name in names if isinstance(name, str) and name in TYPES))
    # An unknown type may mean anything, so the known types alone would be too narrow.
    if not known or len(known) != len(set(map(str, names))):
        return GONE
    return known[0] if len(known) == 1 else known


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return GONE
    # Beyond 64 bits, JSON readers differ on what a number is.
    is_sound = abs(value) < 2**63 if isinstance(value, int) else math.isfinite(value)
    return value if is_sound else GONE


def _positive(value: Any) -> Any:
    number = _number(value)
    return number if number is not GONE and number > 0 else GONE


def _count(value: Any) -> Any:
    number = _number(value)
    return number if isinstance(number, int) and number >= 0 else GONE


def _flag(value: Any) -> Any:
    return value if isinstance(value, bool) else GONE


def _word(value: Any) -> Any:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else GONE


def pattern(value: Any) -> Any:
    is_short = isinstance(value, str) and len(value) <= PATTERN_LIMIT
    return value if is_short and is_safe(value) and _compiles(value) else GONE


@lru_cache(maxsize=1000)
def _compiles(expression: str) -> bool:
    import jsonschema_rs  # loaded with the first schema that has a pattern

    try:
        jsonschema_rs.validator_for({"pattern": expression})
    except Exception:  # border: any objection of the compiler
        return False
    return True


def names(value: Any) -> Any:
    if not isinstance(value, list):
        return GONE
    strings = (name for name in cast("list[Any]", value) if isinstance(name, str))
    return list(dict.fromkeys(name for name in strings if is_safe(name)))


def _names_by_name(value: Any) -> Any:
    if not isinstance(value, dict):
        return GONE
    lists = {name: names(item) for name, item in cast("Json", value).items() if is_safe(name)}
    return {name: item for name, item in lists.items() if item is not GONE} or GONE


READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "type": _type,
    "title": lambda value: text(value, TITLE_LIMIT),
    "description": text,
    "enum": enum,
    "default": _value,
    "examples": _examples,
    "required": names,
    "dependentRequired": _names_by_name,
    "format": _word,
    "contentEncoding": _word,
    "contentMediaType": _word,
    "pattern": pattern,
    "minLength": _count,
    "maxLength": _count,
    "minItems": _count,
    "maxItems": _count,
    "minProperties": _count,
    "maxProperties": _count,
    "minimum": _number,
    "maximum": _number,
    "exclusiveMinimum": _number,
    "exclusiveMaximum": _number,
    "multipleOf": _positive,
    "uniqueItems": _flag,
    "deprecated": _flag,
    "readOnly": _flag,
    "writeOnly": _flag,
}
"""Every other keyword that is not made of schemas is left out: `$schema`, `$id`, `x-…`, `nullable` …"""


def read(schema: Json) -> Json:
    """The keywords that can be passed on as they are or cleaned."""
    found: Json = {}
    for keyword, value in schema.items():
        reader = READERS.get(keyword)
        kept = GONE if reader is None else reader(value)
        if kept is not GONE:
            found[keyword] = kept
    if "const" in schema and (only := enum([schema["const"]])) is not GONE:
        found["enum"] = only  # the same, and more APIs know it
    return found
