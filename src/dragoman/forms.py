"""Reads forms of servers into typed fields, and checks the values that a person enters.

`fields_of` reads the `requestedSchema` of a form elicitation; all front ends use its result. The schema is
untrusted: a form with too many fields, or with a structure that the specification does not allow, is refused.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, cast

from msgspec import UNSET, Struct, UnsetType, structs

from dragoman.cleaning import fold

FieldKind = Literal["text", "number", "integer", "boolean", "choice", "choices"]
FieldValue = str | int | float | bool | tuple[str, ...]

FIELD_LIMIT: Final = 64
CHOICE_LIMIT: Final = 500
TEXT_LIMIT: Final = 100_000
"""The maximum length of one value, in characters."""
PATTERN_LIMIT_BYTES: Final = 64 * 1024
"""The size limit of a compiled pattern; compiling one takes up to a millisecond. The server checks values
with larger patterns."""
FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})
_EXAMPLES: Final = {
    "email": "an e-mail address",
    "uri": "a URI such as https://example.com/",
    "date": "a date such as 2026-07-28",
    "date-time": "a date and time such as 2026-07-28T12:00:00Z",
}
_SECRET: Final = re.compile(
    r"\b(pass ?(word|wd|code|phrase)?s?|pwd?|secrets?|(api|access|private|secret) ?keys?"
    r"|(access|auth|bearer|refresh|api|session)? ?token|credentials?|pin|cvv|cvc|otp|ssn"
    r"|(credit )?card ?(number|no))\d*\b"
)
_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_BETWEEN_WORDS: Final = re.compile(r"[^\w|]+")
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\-.]+")


class UnusableForm(Exception):
    """A form that cannot be shown; the text says why."""


class Choice(Struct, frozen=True):
    value: str
    title: str


class FormField(Struct, frozen=True, kw_only=True):
    """One field of a form."""

    name: str
    kind: FieldKind
    title: str = ""
    description: str = ""
    is_required: bool = False
    default: FieldValue | UnsetType = UNSET
    choices: tuple[Choice, ...] = ()
    """The values of a `choice` or `choices`."""
    format: Literal["email", "uri", "date", "date-time"] | None = None
    pattern: str | None = None
    minimum: float | None = None
    """The minimum value of a number, length of a text, or number of choices, depending on `kind`."""
    maximum: float | None = None
    is_secret: bool = False
    """Whether its name or title suggests a password or another secret."""

    @property
    def label(self) -> str:
        return self.title or self.name


def fields_of(schema: Mapping[str, Any]) -> tuple[FormField, ...]:
    """The fields of a form, in the order of the schema. `UnusableForm` if it is not one that can be shown."""
    if schema.get("type", "object") != "object":
        raise UnusableForm("the schema of the form is not an object")
    properties: Any = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise UnusableForm("the properties of the form are not an object")
    parts = cast("dict[str, Any]", properties)
    if len(parts) > FIELD_LIMIT:
        raise UnusableForm(f"the form has more than {FIELD_LIMIT} fields")
    required: Any = schema.get("required", [])
    names = cast("list[Any]", required) if isinstance(required, list) else []
    return tuple(_field(name, part, name in names) for name, part in parts.items())


def _field(name: str, part: Any, is_required: bool) -> FormField:
    if not isinstance(part, dict):
        raise UnusableForm(f"the field {name!r} has no schema")
    schema, may_be_null = _without_null(cast("dict[str, Any]", part))
    kind = _kind(name, schema)
    lowest, highest = _BOUNDS.get(kind, ("", ""))
    title = _text(schema, "title")
    field = FormField(
        name=name,
        kind=kind,
        title=title,
        description=_text(schema, "description"),
        is_required=is_required and not may_be_null,
        choices=_choices(name, kind, schema),
        format=_format(schema) if kind == "text" else None,
        pattern=_text(schema, "pattern") or None if kind == "text" else None,
        minimum=_number(schema.get(lowest)),
        maximum=_number(schema.get(highest)),
        is_secret=kind in ("text", "number", "integer") and _is_secret(name, title, schema),
    )
    return structs.replace(field, default=_default(field, schema.get("default", UNSET)))


_BOUNDS: Final[Mapping[str, tuple[str, str]]] = {
    "text": ("minLength", "maxLength"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "choices": ("minItems", "maxItems"),
}


def _without_null(schema: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The schema without the alternative null: libraries write an optional value as a choice between its type
    and null."""
    kinds: Any = schema.get("type")
    if isinstance(kinds, list) and len(cast("list[Any]", kinds)) == 2:
        named = [each for each in cast("list[Any]", kinds) if each != "null"]
        if len(named) == 1:
            return {**schema, "type": named[0]}, True
    parts: Any = schema.get("anyOf")
    if "type" not in schema and isinstance(parts, list):
        others = [each for each in cast("list[Any]", parts) if each != {"type": "null"}]
        if len(others) == 1 and isinstance(others[0], dict) and len(cast("list[Any]", parts)) == 2:
            rest = {name: value for name, value in schema.items() if name != "anyOf"}
            return {**cast("dict[str, Any]", others[0]), **rest}, True
    return schema, False


def _kind(name: str, schema: Mapping[str, Any]) -> FieldKind:
    match schema.get("type", "string"):
        case "string":
            return "choice" if "enum" in schema or "oneOf" in schema else "text"
        case "number":
            return "number"
        case "integer":
            return "integer"
        case "boolean":
            return "boolean"
        case "array":
            return "choices"
        case _:
            raise UnusableForm(f"the field {name!r} is neither a text, a number, a yes or no, nor a choice")


def _choices(name: str, kind: FieldKind, schema: Mapping[str, Any]) -> tuple[Choice, ...]:
    if kind not in ("choice", "choices"):
        return ()
    source: Any = schema if kind == "choice" else schema.get("items")
    found = list(_listed_choices(cast("dict[str, Any]", source))) if isinstance(source, dict) else []
    if not found or len(found) > CHOICE_LIMIT:
        raise UnusableForm(f"the field {name!r} has no choices, or more than {CHOICE_LIMIT}")
    if len({choice.value for choice in found}) < len(found):
        raise UnusableForm(f"the field {name!r} has a choice twice")
    return tuple(found)


def _listed_choices(schema: Mapping[str, Any]) -> Iterator[Choice]:
    listed: Any = schema.get("enum")
    titled: Any = schema.get("oneOf", schema.get("anyOf"))
    if isinstance(listed, list):
        titles: Any = schema.get("enumNames")
        names = cast("list[Any]", titles) if isinstance(titles, list) else []
        for number, value in enumerate(cast("list[Any]", listed)):
            title = names[number] if number < len(names) else value
            yield _choice(value, title)
    elif isinstance(titled, list):
        for each in cast("list[Any]", titled):
            option = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
            yield _choice(option.get("const"), option.get("title", option.get("const")))


def _choice(value: Any, title: Any) -> Choice:
    if not isinstance(value, str):
        raise UnusableForm("a choice of the form is not a text")
    return Choice(value, title if isinstance(title, str) and title else value)


def _default(field: FormField, value: Any) -> FieldValue | UnsetType:
    """The default, unless it does not fit its own field."""
    if isinstance(value, list):
        value = tuple(cast("list[Any]", value))
    return UNSET if value is UNSET or field.is_secret or _problem(field, value) else value


def _text(schema: Mapping[str, Any], name: str) -> str:
    value = schema.get(name)
    return value if isinstance(value, str) else ""


def _format(schema: Mapping[str, Any]) -> Any:
    name = _text(schema, "format")
    return name if name in FORMATS else None


def _number(value: Any) -> float | None:
    """The bound as a number. A value that is not a number, or is too large to be written, counts as no
    bound."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and abs(value) <= sys.float_info.max else None


def _is_secret(name: str, title: str, schema: Mapping[str, Any]) -> bool:
    """Whether the name or the title suggests a secret. Letters that look alike are treated as equal."""
    read = fold(f"{_WORD_START.sub(' ', name)} | {_WORD_START.sub(' ', title)}")
    words = _BETWEEN_WORDS.sub(" ", _ACCENTS.sub("", read))
    return schema.get("format") == "password" or bool(_SECRET.search(words))


# Checking answers.


def completed(fields: Sequence[FormField], content: Mapping[str, Any]) -> dict[str, Any]:
    """The content to send: what was entered, and the defaults of fields that are missing. A field that is
    None is not sent: the person has removed what was there."""
    defaults = {field.name: field.default for field in fields if field.default is not UNSET}
    given = {**defaults, **content}
    return {name: _as_json(value) for name, value in given.items() if value is not None}


def _as_json(value: Any) -> Any:
    return list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value


def problems_of(fields: Sequence[FormField], content: Mapping[str, Any]) -> dict[str, str]:
    """The problems of the content by field; empty if it can be sent."""
    known = {field.name for field in fields}
    found = {name: "the form has no such field" for name in content if name not in known}
    for field in fields:
        if field.name not in content:
            if field.is_required:
                found[field.name] = "is required"
        elif problem := _problem(field, content[field.name]):
            found[field.name] = problem
    return found


def value_of(field: FormField, text: str) -> FieldValue:
    """The value that a person's text means for this field. Raises `ValueError` with what is expected
    instead."""
    value = text if field.kind == "text" else _PARSERS[field.kind](field, text)
    if problem := _problem(field, value):
        raise ValueError(problem)
    return value


def _parsed_number(field: FormField, text: str) -> FieldValue:
    try:
        return int(text) if field.kind == "integer" or text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise ValueError(_EXPECTED[field.kind]) from None


def _parsed_boolean(field: FormField, text: str) -> FieldValue:
    word = text.strip().casefold()
    if word not in ("y", "yes", "true", "n", "no", "false"):
        raise ValueError(_EXPECTED["boolean"])
    return word in ("y", "yes", "true")


def _parsed_choice(field: FormField, text: str) -> str:
    """The choice that the text names: by value, by title, or by number, counted from 1."""
    word = text.strip()
    for choice in field.choices:
        if word in (choice.value, choice.title):
            return choice.value
    if word.isdecimal() and 0 < int(word) <= len(field.choices):
        return field.choices[int(word) - 1].value
    raise ValueError("must be one of the list")


def _parsed_choices(field: FormField, text: str) -> FieldValue:
    return tuple(dict.fromkeys(_parsed_choice(field, each) for each in text.split(",") if each.strip()))


_PARSERS: Final[Mapping[str, Callable[[FormField, str], FieldValue]]] = {
    "number": _parsed_number,
    "integer": _parsed_number,
    "boolean": _parsed_boolean,
    "choice": _parsed_choice,
    "choices": _parsed_choices,
}
_EXPECTED: Final[Mapping[str, str]] = {
    "text": "must be a text",
    "number": "must be a number",
    "integer": "must be a whole number",
    "boolean": "must be yes or no",
    "choice": "must be one of the choices",
    "choices": "must be a list of choices",
}


def _problem(field: FormField, value: Any) -> str | None:
    """Why the value does not fit; None if it does."""
    if not _has_kind(field, value):
        return _EXPECTED[field.kind]
    if field.kind == "text":
        return _text_problem(field, value)
    if field.kind in ("number", "integer"):
        return _bounds_problem(field, value, "must be {} {:g}")
    if field.kind == "choices":
        return _bounds_problem(field, len(value), "must have {} {:g} choices")
    return None


def _has_kind(field: FormField, value: Any) -> bool:
    match field.kind:
        case "text":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "number":
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return is_number and abs(value) < float("inf")
        case "integer":
            is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return is_whole and not isinstance(value, bool)
        case "choice":
            return any(value == choice.value for choice in field.choices)
        case "choices":
            values = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else (None,)
            known = [choice.value for choice in field.choices]
            return all(each in known for each in values) and len(set(values)) == len(values)


def _bounds_problem(field: FormField, value: float, words: str) -> str | None:
    if field.minimum is not None and value < field.minimum:
        return words.format("at least", field.minimum)
    if field.maximum is not None and value > field.maximum:
        return words.format("at most", field.maximum)
    return None


def _text_problem(field: FormField, value: str) -> str | None:
    if len(value) > TEXT_LIMIT:
        return f"must have at most {TEXT_LIMIT} characters"
    if problem := _bounds_problem(field, len(value), "must have {} {:g} characters"):
        return problem
    if field.format is not None and not _fits({"format": field.format}, value):
        return f"must be {_EXAMPLES[field.format]}"
    if field.pattern is not None and not _fits({"pattern": field.pattern}, value):
        return f"must match the pattern {field.pattern}"
    return None


def _fits(schema: Mapping[str, str], value: str) -> bool:
    """Whether the value matches a format or pattern. Patterns run in linear time; the server checks values
    with patterns that cannot."""
    import jsonschema_rs  # loaded with the first field that needs it

    try:
        validator = jsonschema_rs.validator_for(
            dict(schema),
            validate_formats=True,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=PATTERN_LIMIT_BYTES),
        )
    except (jsonschema_rs.ValidationError, ValueError):
        return True
    return validator.is_valid(value)
