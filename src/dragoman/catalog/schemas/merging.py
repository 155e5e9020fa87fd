"""Merges several schemas into one. Pure, for schemas that `rewriting.py` has rewritten.

`conjoin` describes values that fit all schemas, `unite` values that fit one of them, both without
combinators; what cannot be expressed that way is added to the description as a sentence. The merged schema
admits what the schemas admit. Where two keywords conflict, one is kept, so the merged schema may admit more;
the server still validates with its own. One thing is assumed: that a property described in one alternative
has the same type in the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from dragoman.catalog.schemas.keywords import Json, enum, same, types_of
from dragoman.catalog.texts import DESCRIPTION_LIMIT, text

WORDS_LIMIT: Final = 900
LABEL_COUNT: Final = 8
LABEL_LIMIT: Final = 80


# --- all of them ---


def conjoin(one: Json, other: Json) -> Json:
    """Merges `other` into `one`, for values that fit both. `one` is changed, and wins where they conflict."""
    for keyword, value in other.items():
        if keyword not in one:
            one[keyword] = value
        elif keyword in _CONJOINED:
            _CONJOINED[keyword](one, value)
    return one


def _conjoin_properties(one: Json, value: Json) -> None:
    properties: dict[str, Json] = one["properties"]
    for name, schema in value.items():
        properties[name] = conjoin(properties[name], schema) if name in properties else schema


def _conjoin_patterns(one: Json, value: Json) -> None:
    one["patternProperties"] = {**value, **one["patternProperties"]}


def _conjoin_required(one: Json, value: list[str]) -> None:
    one["required"] = list(dict.fromkeys([*one["required"], *value]))


def _conjoin_enum(one: Json, value: list[Any]) -> None:
    allowed = {same(item) for item in value}
    one["enum"] = [item for item in one["enum"] if same(item) in allowed] or one["enum"]


def _conjoin_type(one: Json, value: str | list[str]) -> None:
    ours, theirs = _as_list(one["type"]), _as_list(value)
    both = [name for name in ours if name in theirs or (name == "integer" and "number" in theirs)]
    both += [name for name in theirs if name == "integer" and "number" in ours and name not in both]
    if both:
        one["type"] = both[0] if len(both) == 1 else both


def _conjoin_choice(one: Json, value: list[Json]) -> None:
    if one["anyOf"] != value:
        one["allOf"] = [*one.get("allOf", []), {"anyOf": value}]


def _conjoin_rest(one: Json, value: list[Json]) -> None:
    one["allOf"] = [*one["allOf"], *value]


_CONJOINED: Final = {
    "properties": _conjoin_properties,
    "patternProperties": _conjoin_patterns,
    "required": _conjoin_required,
    "enum": _conjoin_enum,
    "type": _conjoin_type,
    "anyOf": _conjoin_choice,
    "allOf": _conjoin_rest,
}


# --- one of them ---


def unite(options: list[Json]) -> Json:
    """One object schema for several alternatives; each alternative is an object without combinators."""
    first, *others = options
    united: Json = {
        keyword: value
        for keyword, value in first.items()
        if keyword not in _OWN and all(keyword in other and other[keyword] == value for other in others)
    }
    if "patternProperties" not in united and any("patternProperties" in option for option in options):
        united.pop("additionalProperties", None)  # it would forbid what matched a pattern
    united["properties"] = _united_properties(options)
    needed = set(first.get("required", ())).intersection(*(other.get("required", ()) for other in others))
    if needed:
        united["required"] = [name for name in first["required"] if name in needed]
    return united


_OWN: Final = frozenset({"title", "description", "default", "examples", "properties", "required"})


def _united_properties(options: Iterable[Json]) -> dict[str, Json]:
    found: dict[str, list[Json]] = {}
    for option in options:
        for name, schema in option.get("properties", {}).items():
            found.setdefault(name, []).append(schema)
    return {name: either(schemas) for name, schemas in found.items()}


def either(schemas: list[Json]) -> Json:
    """A schema for values that fit one of the two."""
    if not all(schemas):
        return {}
    different = list({same(schema): schema for schema in schemas}.values())
    if len(different) == 1:
        return different[0]
    if all("enum" in schema and schema.keys() <= _ONLY_VALUES for schema in different):
        values = enum([value for schema in different for value in schema["enum"]])
        texts = {key: different[0][key] for key in ("title", "description") if key in different[0]}
        return {"type": types_of(values), **texts, "enum": values}
    return {"anyOf": different}


_ONLY_VALUES: Final = frozenset({"type", "enum", "title", "description"})


def add_conditional_properties(schema: Json, others: list[Json]) -> Json:
    """The schema with the properties that apply only under conditions; none of them is required."""
    if properties := _united_properties(others):
        own: dict[str, Json] = schema.setdefault("properties", {})
        for name, part in properties.items():
            own.setdefault(name, part)
    return schema


# --- in words ---


def add_words(schema: Json, sentence: str) -> Json:
    """The schema with a sentence added to its description."""
    sentence = text(sentence, WORDS_LIMIT)
    before = text(schema.get("description", ""), DESCRIPTION_LIMIT - len(sentence) - 1)
    schema["description"] = f"{before} {sentence}" if before else sentence
    return schema


def describe_options(options: list[Json]) -> str:
    """A sentence that describes the alternatives; empty if there is nothing to describe."""
    labels = [label for label in map(_label, options[: LABEL_COUNT + 1]) if label]
    if len(labels) < 2:
        return ""
    more = f"; or {len(options) - LABEL_COUNT} more" if len(options) > LABEL_COUNT else ""
    return f"Give one of these: {'; or '.join(labels[:LABEL_COUNT])}{more}."


def _label(option: Json) -> str:
    properties: dict[str, Json] = option.get("properties", {})
    fixed = {name: part["enum"][0] for name, part in properties.items() if len(part.get("enum", ())) == 1}
    parts = [f"{name} = {value!r}" for name, value in list(fixed.items())[:LABEL_COUNT]]
    parts += describe_names([name for name in option.get("required", ()) if name not in fixed])
    title = str(option.get("title", ""))[:LABEL_LIMIT]
    return " ".join(filter(None, (f"{title}:" if title and parts else title, ", ".join(parts))))


def describe_names(names: list[str]) -> list[str]:
    """Names joined for a sentence, up to a limit."""
    more = [f"{len(names) - LABEL_COUNT} more"] if len(names) > LABEL_COUNT else []
    return [*(f"`{' '.join(name[:LABEL_LIMIT].split())}`" for name in names[:LABEL_COUNT]), *more]


def _as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
