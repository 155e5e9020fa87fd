"""Forms of servers: every kind of field, what is refused, and the check of answers."""

from typing import Any

import pytest
from msgspec import UNSET

from dragoman.forms import (
    FIELD_LIMIT,
    Choice,
    FormField,
    UnusableForm,
    completed,
    fields_of,
    problems_of,
    value_of,
)

RED, BLUE = Choice("red", "Red"), Choice("blue", "Blue")
TITLED = [{"const": "red", "title": "Red"}, {"const": "blue", "title": "Blue"}]


def one(schema: Any, *, required: bool = False) -> FormField:
    form = {"type": "object", "properties": {"x": schema}, "required": ["x"] if required else []}
    (field,) = fields_of(form)
    return field


KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "text": ({"type": "string"}, {"kind": "text"}),
    "text with everything": (
        {"type": "string", "title": "T", "description": "D", "minLength": 1, "maxLength": 3, "default": "ab"},
        {"kind": "text", "title": "T", "description": "D", "minimum": 1, "maximum": 3, "default": "ab"},
    ),
    "e-mail": ({"type": "string", "format": "email"}, {"kind": "text", "format": "email"}),
    "unknown format": ({"type": "string", "format": "colour"}, {"kind": "text"}),
    "pattern": ({"type": "string", "pattern": "^a"}, {"kind": "text", "pattern": "^a"}),
    "number": (
        {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
        {"kind": "number", "minimum": 0, "maximum": 1, "default": 0.5},
    ),
    "integer": ({"type": "integer", "default": 0}, {"kind": "integer", "default": 0}),
    "boolean": ({"type": "boolean", "default": False}, {"kind": "boolean", "default": False}),
    "enum": (
        {"type": "string", "enum": ["red", "blue"], "default": "blue"},
        {"kind": "choice", "choices": (Choice("red", "red"), Choice("blue", "blue")), "default": "blue"},
    ),
    "enumNames": (
        {"type": "string", "enum": ["red", "blue"], "enumNames": ["Red", "Blue"]},
        {"kind": "choice", "choices": (RED, BLUE)},
    ),
    "oneOf": ({"type": "string", "oneOf": TITLED}, {"kind": "choice", "choices": (RED, BLUE)}),
    "many": (
        {"type": "array", "items": {"type": "string", "enum": ["red"]}, "minItems": 1, "maxItems": 2},
        {"kind": "choices", "choices": (Choice("red", "red"),), "minimum": 1, "maximum": 2},
    ),
    "many titled": (
        {"type": "array", "items": {"anyOf": TITLED}, "default": ["blue"]},
        {"kind": "choices", "choices": (RED, BLUE), "default": ("blue",)},
    ),
    "optional by type": ({"type": ["integer", "null"]}, {"kind": "integer"}),
    "optional by anyOf": (
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "title": "N", "default": None},
        {"kind": "integer", "title": "N"},
    ),
    "default that does not fit": ({"type": "integer", "default": "many"}, {"kind": "integer"}),
}


@pytest.mark.requirement("ASK-1")
@pytest.mark.parametrize(("schema", "expected"), KINDS.values(), ids=KINDS.keys())
def test_every_kind_of_field_is_read(schema: dict[str, Any], expected: dict[str, Any]):
    assert one(schema) == FormField(name="x", **expected)


def test_fields_keep_their_order_and_what_is_required():
    form = {"properties": {"b": {"type": "string"}, "a": {"type": "boolean"}}, "required": ["a"]}

    assert [(field.name, field.is_required) for field in fields_of(form)] == [("b", False), ("a", True)]
    assert fields_of({}) == ()


@pytest.mark.parametrize(
    "form",
    [
        {"type": "array"},
        {"properties": []},
        {"properties": {"x": 1}},
        {"properties": {"x": {"type": "object", "properties": {}}}},
        {"properties": {"x": {"type": "array", "items": {"type": "string"}}}},
        {"properties": {"x": {"type": "string", "enum": []}}},
        {"properties": {"x": {"type": "string", "enum": [1]}}},
        {"properties": {"x": {"type": "string", "enum": ["a", "a"]}}},
        {"properties": {"x": {"type": "string", "oneOf": [{"title": "no value"}]}}},
        {"properties": {"x": {"type": ["string", "integer"]}}},
        {"properties": {f"f{n}": {"type": "string"} for n in range(FIELD_LIMIT + 1)}},
    ],
)
def test_a_schema_that_is_not_a_form_is_refused(form: dict[str, Any]):
    with pytest.raises(UnusableForm):
        fields_of(form)


SECRETS = {
    "password": True,
    "userPassword": True,
    "api_key": True,
    "APIKey": True,
    "apiKey": True,
    "accessToken": True,
    "github-token": True,
    "client_secret": True,
    "pin": True,
    "cardNumber": True,
    "name": False,
    "shipping": False,
    "max_tokens": False,
    "compass": False,
    "key": False,
    "secretary": False,
}


@pytest.mark.parametrize(("name", "is_secret"), SECRETS.items())
def test_fields_that_ask_for_secrets_are_marked(name: str, is_secret: bool):
    (field,) = fields_of({"properties": {name: {"type": "string", "default": "s"}}})
    (titled,) = fields_of({"properties": {"x": {"type": "string", "title": name}}})
    (choice,) = fields_of({"properties": {name: {"type": "boolean"}}})

    assert (field.is_secret, titled.is_secret, choice.is_secret) == (is_secret, is_secret, False)
    assert field.default == (UNSET if is_secret else "s")


ANSWERS: list[tuple[dict[str, Any], Any, str | None]] = [
    ({"type": "string"}, "a", None),
    ({"type": "string"}, 1, "must be a text"),
    ({"type": "string", "minLength": 2}, "é", "must have at least 2 characters"),
    ({"type": "string", "maxLength": 1}, "ab", "must have at most 1 characters"),
    ({"type": "string", "format": "email"}, "a@b.example", None),
    ({"type": "string", "format": "email"}, "a.b", "must be an e-mail address"),
    ({"type": "string", "format": "uri"}, "https://a.example/", None),
    ({"type": "string", "format": "uri"}, "no uri", "must be a URI such as https://example.com/"),
    ({"type": "string", "format": "date"}, "2026-02-28", None),
    ({"type": "string", "format": "date"}, "2026-02-30", "must be a date such as 2026-07-28"),
    ({"type": "string", "format": "date-time"}, "2026-02-28T10:00:00Z", None),
    (
        {"type": "string", "format": "date-time"},
        "2026-02-28",
        "must be a date and time such as 2026-07-28T12:00:00Z",
    ),
    ({"type": "string", "pattern": "^a+$"}, "aa", None),
    ({"type": "string", "pattern": "^a+$"}, "b", "must match the pattern ^a+$"),
    ({"type": "string", "pattern": "("}, "b", None),
    ({"type": "integer"}, 3, None),
    ({"type": "integer"}, 3.0, None),
    ({"type": "integer"}, 3.5, "must be a whole number"),
    ({"type": "integer"}, True, "must be a whole number"),
    ({"type": "number", "minimum": 1}, 0.5, "must be at least 1"),
    ({"type": "number", "maximum": 1}, 2, "must be at most 1"),
    ({"type": "number"}, float("nan"), "must be a number"),
    ({"type": "number"}, float("inf"), "must be a number"),
    ({"type": "boolean"}, False, None),
    ({"type": "boolean"}, 0, "must be yes or no"),
    ({"type": "string", "oneOf": TITLED}, "red", None),
    ({"type": "string", "oneOf": TITLED}, "Red", "must be one of the choices"),
    ({"type": "array", "items": {"anyOf": TITLED}}, ["red", "blue"], None),
    ({"type": "array", "items": {"anyOf": TITLED}}, ["red", "red"], "must be a list of choices"),
    ({"type": "array", "items": {"anyOf": TITLED}}, "red", "must be a list of choices"),
    ({"type": "array", "items": {"anyOf": TITLED}}, [["red"]], "must be a list of choices"),
    ({"type": "array", "items": {"anyOf": TITLED}, "minItems": 1}, [], "must have at least 1 choices"),
]


@pytest.mark.requirement("ASK-1")
@pytest.mark.parametrize(("schema", "value", "problem"), ANSWERS)
def test_an_answer_is_checked_before_it_is_sent(schema: dict[str, Any], value: Any, problem: str | None):
    assert problems_of([one(schema)], {"x": value}) == ({} if problem is None else {"x": problem})


def test_missing_and_unknown_fields_are_problems():
    fields = [one({"type": "string"}, required=True)]

    assert problems_of(fields, {"y": 1}) == {"x": "is required", "y": "the form has no such field"}
    assert problems_of([one({"type": "string"})], {}) == {}


def test_fields_that_were_left_out_take_their_defaults():
    fields = fields_of(
        {
            "properties": {
                "a": {"type": "string", "default": "x"},
                "b": {"type": "array", "items": {"enum": ["p", "q"]}, "default": ["q"]},
                "c": {"type": "boolean", "default": False},
                "d": {"type": "integer"},
            }
        }
    )

    assert completed(fields, {"a": "y", "d": None}) == {"a": "y", "b": ["q"], "c": False}


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, "1", "1"),
        ({"type": "integer"}, "-3", -3),
        ({"type": "number"}, "2", 2),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "n", False),
        ({"type": "string", "oneOf": TITLED}, "Blue", "blue"),
        ({"type": "string", "oneOf": TITLED}, "2", "blue"),
        ({"type": "array", "items": {"anyOf": TITLED}}, "2, Red,", ("blue", "red")),
        ({"type": "array", "items": {"anyOf": TITLED}}, "", ()),
    ],
)
def test_typed_text_becomes_a_value(schema: dict[str, Any], text: str, value: Any):
    assert value_of(one(schema), text) == value


@pytest.mark.parametrize(
    ("schema", "text", "problem"),
    [
        ({"type": "integer"}, "2.5", "must be a whole number"),
        ({"type": "number"}, "nan", "must be a number"),
        ({"type": "boolean"}, "perhaps", "must be yes or no"),
        ({"type": "string", "oneOf": TITLED}, "3", "must be one of the list"),
        ({"type": "string", "oneOf": TITLED}, "0", "must be one of the list"),
        ({"type": "string", "minLength": 2}, "a", "must have at least 2 characters"),
    ],
)
def test_an_invalid_value_is_reported(schema: dict[str, Any], text: str, problem: str):
    with pytest.raises(ValueError, match=problem):
        value_of(one(schema), text)
