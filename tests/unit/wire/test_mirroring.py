"""Parts of a request repeated as headers, rule by rule (specification digest §2.6)."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire.mirroring import (
    DEPTH_LIMIT,
    KEYWORD,
    BadMirror,
    argument_headers,
    escape,
    mirrored,
    request_headers,
)

pytestmark = pytest.mark.requirement("TRN-2")


def string(header: Any, **more: Any) -> dict[str, Any]:
    return {"type": "string", KEYWORD: header, **more}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


# --- which annotations are allowed ---


@pytest.mark.parametrize(
    ("given_schema", "found"),
    [
        pytest.param({}, {}, id="no schema at all"),
        pytest.param(schema(a={"type": "string"}), {}, id="no annotation"),
        pytest.param(schema(a=string("Tenant")), {("a",): "Tenant"}, id="a string"),
        pytest.param(schema(a={"type": "integer", KEYWORD: "N"}), {("a",): "N"}, id="an integer"),
        pytest.param(schema(a={"type": "boolean", KEYWORD: "B"}), {("a",): "B"}, id="a boolean"),
        pytest.param(
            schema(a=schema(b=schema(c=string("Deep")))), {("a", "b", "c"): "Deep"}, id="under properties"
        ),
        pytest.param(
            schema(a=string("A"), b={"type": "number"}, c=string("C")),
            {("a",): "A", ("c",): "C"},
            id="several",
        ),
        pytest.param(
            schema(a=string("!#$%&'*+-.^_`|~09azAZ")), {("a",): "!#$%&'*+-.^_`|~09azAZ"}, id="token"
        ),
        pytest.param(
            schema(items=string("A"), properties=schema(oneOf=string("B"))),
            {("items",): "A", ("properties", "oneOf"): "B"},
            id="properties that are named like keywords",
        ),
        pytest.param(
            schema(**{KEYWORD: {"type": "string"}}), {}, id="a property that is named like the annotation"
        ),
        pytest.param(schema(a=True, b=False), {}, id="schemas that are booleans"),
        pytest.param({"properties": ["a"]}, {}, id="properties that are no object"),
    ],
)
def test_which_arguments_are_mirrored(given_schema: dict[str, Any], found: dict[Any, str]):
    assert mirrored(given_schema) == found


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a b",
        "a:b",
        "a\tb",
        "a\r\nX-Evil: 1",
        "a\x00",
        "ü",
        "a,b",
        "(a)",
        "a/b",
        '"a"',
        7,
        None,
        True,
        [],
    ],
    ids=repr,
)
def test_a_header_name_that_is_not_a_token_makes_the_tool_unusable(name: Any):
    with pytest.raises(BadMirror, match="no name for a header"):
        mirrored(schema(a=string(name)))


@pytest.mark.parametrize("pair", [("Tenant", "Tenant"), ("Tenant", "tenant"), ("x-ID", "X-id")], ids=str)
def test_one_header_for_two_properties_makes_the_tool_unusable(pair: tuple[str, str]):
    with pytest.raises(BadMirror, match="two parts"):
        mirrored(schema(a=string(pair[0]), b=schema(c=string(pair[1]))))


@pytest.mark.parametrize(
    "kind", ["number", "object", "array", "null", None, "", ["string"], ["string", "null"]], ids=repr
)
def test_only_strings_integers_and_booleans_can_be_mirrored(kind: Any):
    with pytest.raises(BadMirror, match="no string, integer or boolean"):
        mirrored(schema(a={"type": kind, KEYWORD: "A"}))


def test_a_property_without_a_type_cannot_be_mirrored():
    with pytest.raises(BadMirror, match="no string, integer or boolean"):
        mirrored(schema(a={KEYWORD: "A"}))


@pytest.mark.parametrize(
    "part",
    [
        *({key: string("A")} for key in ("items", "not", "if", "then", "else", "additionalProperties")),
        *({key: string("A")} for key in ("contains", "propertyNames", "unevaluatedProperties")),
        *({key: [{}, string("A")]} for key in ("oneOf", "anyOf", "allOf", "prefixItems")),
        *(
            {key: {"x": string("A")}}
            for key in ("$defs", "definitions", "patternProperties", "dependentSchemas")
        ),
        {"items": schema(b=string("A"))},
        {"oneOf": [{"items": {"anyOf": [string("A")]}}]},
    ],
    ids=json.dumps,
)
@pytest.mark.parametrize("is_nested", [False, True], ids=["at the root", "in a property"])
def test_an_annotation_outside_properties_makes_the_tool_unusable(part: Any, is_nested: bool):
    with pytest.raises(BadMirror, match="where only properties may lead"):
        mirrored(schema(a={"type": "object", **part}) if is_nested else {"type": "object", **part})


def test_an_annotation_at_the_root_makes_the_tool_unusable():
    with pytest.raises(BadMirror, match="root"):
        mirrored(string("A"))


def test_one_bad_annotation_among_good_ones_is_enough():
    with pytest.raises(BadMirror):
        mirrored(schema(a=string("A"), b={"type": "number", KEYWORD: "B"}))


@pytest.mark.parametrize("key", ["properties", "items"])
def test_a_very_deep_schema_is_searched_to_a_limit(key: str):
    deep: Any = string("A")
    for _ in range(10 * DEPTH_LIMIT):
        deep = {"properties": {"a": deep}} if key == "properties" else {"items": deep}
    with pytest.raises(BadMirror, match="too deeply"):
        mirrored(deep)


def test_the_reason_is_short_however_long_the_names_are():
    with pytest.raises(BadMirror) as caught:
        mirrored(schema(**{"x" * 100_000: string("a b")}))
    assert len(str(caught.value)) < 300


# --- what one call's arguments give ---

PATHS = {("a",): "A", ("b", "c"): "Deep"}


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, {}),
        ({"a": None}, {}),
        ({"a": "plain"}, {"Mcp-Param-A": "plain"}),
        ({"a": "with inner  blanks"}, {"Mcp-Param-A": "with inner  blanks"}),
        ({"a": ""}, {"Mcp-Param-A": ""}),
        ({"a": 0}, {"Mcp-Param-A": "0"}),
        ({"a": -7}, {"Mcp-Param-A": "-7"}),
        ({"a": 2**53 - 1}, {"Mcp-Param-A": "9007199254740991"}),
        ({"a": True}, {"Mcp-Param-A": "true"}),
        ({"a": False}, {"Mcp-Param-A": "false"}),
        ({"a": "true"}, {"Mcp-Param-A": "true"}),
        ({"z": "never annotated"}, {}),
        ({"b": {"c": "x", "d": "never annotated"}}, {"Mcp-Param-Deep": "x"}),
        ({"b": {}}, {}),
        ({"b": None}, {}),
        ({"b": "no object"}, {}),
        ({"b": ["c"]}, {}),
        ({"a": "1", "b": {"c": 2}}, {"Mcp-Param-A": "1", "Mcp-Param-Deep": "2"}),
    ],
    ids=str,
)
def test_the_headers_of_a_call(arguments: dict[str, Any], headers: dict[str, str]):
    assert argument_headers(PATHS, arguments) == headers


@pytest.mark.parametrize("value", [{"a": "A"}, ["a"], 1.5], ids=repr)
def test_arguments_that_do_not_match_the_schema_are_not_mirrored(value: Any):
    assert argument_headers(PATHS, {"a": value}) == {}


def test_a_very_long_integer_is_handled():
    argument_headers(PATHS, {"a": 10**5000})


# --- the escape ---


def decoded(value: str) -> str:
    """What a server reads: the other side of the rule, written independently."""
    if value.startswith("=?base64?") and value.endswith("?="):
        return base64.b64decode(value[len("=?base64?") : -len("?=")], validate=True).decode()
    return value


@pytest.mark.parametrize(
    "value",
    ["", "a", "a b", "~!@#$%^&*()", "=?base64?", "?=", "=?base64", "=?BASE64?eA==?=", "=?utf-8?q?x?="],
)
def test_a_value_that_a_header_can_contain_is_sent_unchanged(value: str):
    assert escape(value) == value


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        ("Müller", "=?base64?TcO8bGxlcg==?="),
        (" a", "=?base64?IGE=?="),
        ("a ", "=?base64?YSA=?="),
        (" ", "=?base64?IA==?="),
        ("\t", "=?base64?CQ==?="),
        ("a\tb", "=?base64?YQli?="),
        ("a\r\nX-Evil: 1", "=?base64?YQ0KWC1FdmlsOiAx?="),
        ("a\n", "=?base64?YQo=?="),
        ("\x00", "=?base64?AA==?="),
        ("\x7f", "=?base64?fw==?="),
        ("😀", "=?base64?8J+YgA==?="),
        ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ("=?base64??=", "=?base64?PT9iYXNlNjQ/Pz0=?="),
    ],
    ids=repr,
)
def test_a_value_that_a_header_cannot_contain_is_escaped(value: str, escaped: str):
    assert escape(value) == escaped


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_every_text_can_be_decoded_and_every_header_is_valid(value: str):
    escaped = escape(value)

    assert decoded(escaped) == value
    assert all(" " <= character <= "~" for character in escaped)
    assert escaped == escaped.strip()


def test_a_lone_surrogate_is_left_to_the_message_encoder():
    assert escape("\ud83d").startswith("=?base64?")


# --- what every request repeats ---


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "open"}, "open"),
        ("tools/call", {"name": "öffnen"}, "=?base64?w7ZmZm5lbg==?="),
        ("prompts/get", {"name": "p"}, "p"),
        ("resources/read", {"uri": "db://x"}, "db://x"),
        ("tasks/get", {"taskId": "t"}, "t"),
        ("tasks/update", {"taskId": "t"}, "t"),
        ("tasks/cancel", {"taskId": "t"}, "t"),
        ("tools/list", {"name": "no"}, None),
        ("server/discover", {}, None),
        ("server/discover", None, None),
        ("tools/call", {}, None),
        ("tools/call", {"name": 7}, None),
        ("tools/call", None, None),
        ("resources/read", {"name": "x"}, None),
    ],
    ids=str,
)
def test_every_request_repeats_its_method_and_some_the_name(method: str, params: Any, name: str | None):
    expected = {"Mcp-Method": method} | ({} if name is None else {"Mcp-Name": name})

    assert request_headers(method, params) == expected
