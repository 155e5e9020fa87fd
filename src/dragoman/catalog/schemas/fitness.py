"""Decides whether model APIs accept a schema unchanged, and makes the last changes that they require. Pure.

Defines for each node what a complete schema is (a type, items for arrays, names that APIs accept). A quick
check of the whole schema avoids rewriting most of them. Also finds names with invisible characters: rewriting
cannot make a tool with such names usable. What `finish` returns is complete, and no part of the rewriting
changes an acceptable schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from dragoman.catalog.schemas.keywords import GONE, READERS, Json, pattern, types_of
from dragoman.catalog.schemas.merging import add_words, describe_names
from dragoman.cleaning import is_safe

DEPTH_LIMIT: Final = 72
UNSAFE_LIMIT: Final = 10

LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
OF_OBJECTS: Final = frozenset(
    {"type", "title", "description", "default", "examples", "properties", "required", "additionalProperties",
     "patternProperties", "propertyNames", "minProperties", "maxProperties", "dependentRequired",
     "deprecated"}
)  # fmt: skip
"""Keywords that are allowed at the root."""


def is_fit(root: Json) -> bool:
    """Whether every model API accepts the schema unchanged."""
    is_object = root.get("type") == "object" and isinstance(root.get("properties"), dict)
    return is_object and root.keys() <= OF_OBJECTS and _is_fit(root, DEPTH_LIMIT)


def types(schema: Json) -> list[str]:
    kind: str | list[str] = schema.get("type", [])
    return [kind] if isinstance(kind, str) else kind


# --- one node ---


def finish(schema: Json) -> Json:
    """The schema made complete, in place."""
    _settle_names(schema)
    if "type" not in schema and (kind := _inferred_type(schema)):
        schema["type"] = kind
    if "items" not in schema and "array" in types(schema):
        schema["items"] = {}
    return schema


def _inferred_type(schema: Json) -> str | list[str] | None:
    if "enum" in schema:
        return types_of(schema["enum"])
    if not _ONLY_OBJECTS.isdisjoint(schema):
        return "object"
    return "array" if "items" in schema else None


_ONLY_OBJECTS: Final = frozenset({"properties", "patternProperties", "additionalProperties"})


def _settle_names(schema: Json) -> None:
    """Moves names that an API would refuse to the description, and adds a property for each required name."""
    properties: Json = schema.get("properties", {})
    required: list[str] = schema.get("required", [])
    illegal = {name: None for name in (*properties, *required) if not LEGAL_NAME.fullmatch(name)}
    if illegal:
        _describe_illegal(schema, list(illegal), required)
        for name in illegal:
            properties.pop(name, None)
        schema.pop("additionalProperties", None)  # it would forbid them
    if "required" in schema:
        schema["required"] = [name for name in required if name not in illegal]
        if "properties" in schema:
            for name in schema["required"]:
                properties.setdefault(name, {})


def _describe_illegal(schema: Json, illegal: list[str], required: list[str]) -> None:
    for sentence, is_needed in (("Also needs", True), ("Also takes", False)):
        names = [
            name for name in illegal if (name in required) is is_needed and is_safe(name) and name.strip()
        ]
        if names:
            add_words(schema, f"{sentence}: {', '.join(describe_names(names))}.")


# --- a whole schema ---


def _is_fit(schema: Any, depth: int) -> bool:
    if not isinstance(schema, dict) or not depth:
        return False
    part = cast("Json", schema)
    for keyword, value in part.items():
        reader = READERS.get(keyword)
        if reader is None:
            if not _is_fit_structure(keyword, value, depth - 1):
                return False
        elif reader(value) != value:
            return False
    return _is_complete(part)


def _is_fit_structure(keyword: str, value: Any, depth: int) -> bool:
    if keyword in _NAMES:
        is_good = _NAMES[keyword]
        return isinstance(value, dict) and all(
            is_good(name) and _is_fit(part, depth) for name, part in cast("Json", value).items()
        )
    if keyword in ("anyOf", "allOf"):
        return _is_fit_list(keyword, value, depth)
    if keyword == "additionalProperties":
        return isinstance(value, bool) or _is_fit(value, depth)
    return keyword in ("items", "propertyNames") and _is_fit(value, depth)


def _is_legal(name: str) -> bool:
    return LEGAL_NAME.fullmatch(name) is not None


def _is_pattern(name: str) -> bool:
    return pattern(name) is not GONE


_NAMES: Final = {"properties": _is_legal, "patternProperties": _is_pattern}


def _is_fit_list(keyword: str, value: Any, depth: int) -> bool:
    if not isinstance(value, list):
        return False
    parts = cast("list[Any]", value)
    if keyword == "anyOf":
        return len(parts) > 1 and all(_is_fit(part, depth) for part in parts)
    # Only merged alternatives leave such schemas.
    alone = (isinstance(part, dict) and list(cast("Json", part)) == ["anyOf"] for part in parts)
    return bool(parts) and all(alone) and all(_is_fit(part, depth) for part in parts)


def _is_complete(schema: Json) -> bool:
    """Whether `finish` would leave it as it is."""
    if "type" not in schema:
        if _inferred_type(schema) is not None:
            return False
    elif "items" not in schema and "array" in types(schema):
        return False
    if "required" not in schema:
        return True
    required: list[str] = schema["required"]
    known = schema.get("properties")
    return all(map(LEGAL_NAME.fullmatch, required) if known is None else (name in known for name in required))


# --- invisible names ---


def unsafe_names(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of parameters with invisible characters; the first few."""
    found: dict[str, None] = {}
    waiting: list[Any] = [schema]
    while waiting and len(found) < UNSAFE_LIMIT:
        current = waiting.pop()
        if isinstance(current, dict):
            part = cast("Json", current)
            found.update((name, None) for name in _names_in(part) if not is_safe(name))
            waiting.extend(part.values())
        elif isinstance(current, list):
            waiting.extend(cast("list[Any]", current))
    return tuple(found)[:UNSAFE_LIMIT]


def _names_in(part: Json) -> Iterator[str]:
    for keyword, kind in (("properties", dict), ("required", list)):
        value = part.get(keyword)
        if isinstance(value, kind):
            yield from (name for name in cast("list[Any]", value) if isinstance(name, str))
