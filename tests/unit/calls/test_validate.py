"""Arguments against a schema that a stranger wrote."""

import socket
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from dragoman.calls.validate import (
    PROBLEM_LIMIT,
    Checker,
    _Input,  # pyright: ignore[reportPrivateUsage]
)
from dragoman.errors import InvalidArguments
from tests.cpu_time import CpuTimer
from tests.unit.fakes import tool

INTEGER_X = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def problems(schema: dict[str, Any], arguments: Any) -> tuple[str, ...]:
    try:
        Checker().check(tool(schema), arguments)
    except InvalidArguments as error:
        return error.problems
    return ()


@pytest.mark.parametrize(
    ("schema", "arguments", "complaint"),
    [
        pytest.param({}, {"anything": 1}, None, id="no constraint"),
        pytest.param({"type": "object"}, {"anything": 1}, None, id="any object"),
        pytest.param(INTEGER_X, {"x": 1}, None, id="fits"),
        pytest.param(INTEGER_X, {"x": 1.0}, None, id="1.0 is an integer in JSON Schema"),
        pytest.param(INTEGER_X, {"x": 10**40}, None, id="a big integer"),
        pytest.param(INTEGER_X, {"x": "1"}, "x: ", id="a text for a number"),
        pytest.param(INTEGER_X, {"x": True}, "x: ", id="a boolean for a number"),
        pytest.param(INTEGER_X, {}, '"x" is a required property', id="missing"),
        pytest.param({"properties": {"x": {}}, "additionalProperties": False}, {"y": 1}, "'y'", id="unknown"),
        pytest.param({"properties": {"x": {"enum": ["a"]}}}, {"x": "b"}, "x: ", id="not in the enum"),
        pytest.param(
            {"properties": {"x": {"items": {"type": "string"}}}}, {"x": ["a", 1]}, "x.1: ", id="deep"
        ),
        pytest.param(
            {"$ref": "#/$defs/a", "$defs": {"a": {"required": ["z"]}}}, {}, '"z"', id="an inner $ref"
        ),
        pytest.param({"properties": {"x": False}}, {"x": 1}, "x: ", id="a property that may not be"),
        pytest.param(
            {
                "$schema": "http://json-schema.org/draft-04/schema#",
                "properties": {"x": {"maximum": 5, "exclusiveMaximum": True}},
            },
            {"x": 5},
            "x: ",
            id="an older dialect",
        ),
    ],
)
def test_each_invalid_argument_is_named(
    schema: dict[str, Any], arguments: dict[str, Any], complaint: str | None
):
    found = problems(schema, arguments)

    if complaint is None:
        assert found == ()
    else:
        assert complaint in found[0]


def test_the_error_names_server_and_tool():
    with pytest.raises(InvalidArguments) as caught:
        Checker().check(tool(INTEGER_X), {})
    assert (caught.value.server, caught.value.tool) == ("box", "mcp__box__open")


def test_only_the_first_few_problems_are_reported():
    schema = {"properties": {f"p{n}": {"type": "integer"} for n in range(100)}}

    assert len(problems(schema, {f"p{n}": "x" for n in range(100)})) == PROBLEM_LIMIT


def test_a_tool_that_is_listed_again_is_validated_by_its_new_schema():
    checker = Checker()
    checker.check(tool(INTEGER_X), {"x": 1})

    with pytest.raises(InvalidArguments):
        checker.check(tool({"required": ["y"]}), {"x": 1})


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"properties": {"x": {"type": "wibble"}}}, id="an unknown type"),
        pytest.param({"properties": {"x": {"pattern": "("}}}, id="a broken pattern"),
        pytest.param({"properties": {"x": {"pattern": r"(?<=a+)b\p{Nope}"}}}, id="an impossible pattern"),
        pytest.param(
            {"required": ["x", "x"], "properties": {"x": {"minimum": "high"}}}, id="a text as minimum"
        ),
        pytest.param(
            {"$schema": "https://example.invalid/own-dialect", "required": ["y"]}, id="another dialect"
        ),
        pytest.param({"$ref": "#/$defs/missing"}, id="an inner $ref to nothing"),
        pytest.param({"$ref": "file:///etc/passwd"}, id="a $ref to a file"),
        pytest.param({"$ref": "relative.json"}, id="a relative $ref"),
    ],
)
def test_a_schema_that_cannot_be_compiled_lets_the_call_through(schema: dict[str, Any]):
    assert problems(schema, {"x": 1}) == ()


def test_nothing_is_fetched_for_a_remote_ref():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        for schema in (
            {"$ref": address},
            {"properties": {"x": {"$ref": f"{address}#/a"}}},
            {"$schema": address},
        ):
            assert problems({**schema, "required": []}, {"x": 1}) == ()

        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize(
    "pattern", [r"^(a+)+$", r"^(a|aa)+$", r"^(.*?,){20}P", r"(x+x+)+y", r"^(a?){60}a{60}$"]
)
def test_a_hostile_pattern_is_fast(pattern: str):
    started = CpuTimer()
    problems({"properties": {"x": {"pattern": pattern}}}, {"x": "a" * 60 + "x" * 60 + "!"})

    assert started.seconds() < 1.0


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"$ref": "#"}, id="itself"),
        pytest.param(
            {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}, id="a circle"
        ),
        pytest.param(
            {"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}, id="a contradiction"
        ),
        pytest.param({"$dynamicAnchor": "x", "allOf": [{"$dynamicRef": "#x"}]}, id="dynamically"),
    ],
)
def test_a_recursive_schema_is_handled(schema: dict[str, Any]):
    assert problems(schema, {"x": 1}) == ()


DOUBLING = """
import sys
from dragoman.calls.validate import Checker
from tests.unit.fakes import tool

spelling, own, shelf = sys.argv[1:]
name = {"$anchor": "a%d", "$id": "http://x/a%d"}.get(own)
parts = {"a60": {"type": "object"}}
for n in range(60):
    parts[f"a{n}"] = {"allOf": [{"$ref": spelling % (n + 1)}] * 2}
if name:
    parts = {key: {**part, own: name % int(key[1:])} for key, part in parts.items()}
schema = {"$id": "http://root/", "allOf": [{"$ref": spelling % 0}], shelf: parts}
Checker().check(tool(schema), {"x": 1})
"""


@pytest.mark.parametrize(
    ("spelling", "own", "shelf"),
    [
        pytest.param("#/$defs/a%d", "", "$defs", id="pointers"),
        pytest.param("#/x-own/a%d", "", "x-own", id="pointers to a shelf of its own"),
        pytest.param("#/%%24defs/a%d", "", "$defs", id="pointers with escapes"),
        pytest.param("http://root/#/$defs/a%d", "", "$defs", id="whole addresses"),
        pytest.param("#a%d", "$anchor", "$defs", id="anchors"),
        pytest.param("http://x/a%d", "$id", "$defs", id="ids"),
    ],
)
def test_a_schema_that_expands_exponentially_is_fast(spelling: str, own: str, shelf: str):
    root = __file__.partition("/tests/unit/")[0]
    command = [sys.executable, "-c", DOUBLING, spelling, own, shelf]
    done = subprocess.run(command, cwd=root, timeout=3, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({1, 2}, id="a set"),
        pytest.param(object(), id="an object"),
        pytest.param(b"bytes", id="bytes"),
        pytest.param("\ud83d", id="half a surrogate pair"),
        pytest.param({1: 2}, id="a number as key"),
    ],
)
def test_arguments_that_are_not_json_are_invalid_arguments(value: object):
    with pytest.raises(InvalidArguments):
        Checker().check(tool(INTEGER_X), {"x": value})


def test_any_mapping_is_accepted_as_arguments():
    Checker().check(tool(INTEGER_X), MappingProxyType({"x": 1}))


def test_a_schema_whose_cost_multiplies_with_the_depth_of_the_value_is_not_run():
    """A hundred times a hundred times a hundred …, as deep as the value goes."""
    part = {
        f"L{n}": {"allOf": [{"properties": {"a": {"$ref": f"#/$defs/L{n + 1}"}}}] * 100} for n in range(12)
    }
    schema = {"type": "object", "$ref": "#/$defs/L0", "$defs": {**part, "L12": {"type": "object"}}}
    value: Any = 1
    for _ in range(12):
        value = {"a": value}
    started = CpuTimer()
    Checker().check(tool(schema), value)
    assert started.seconds() < 2


def test_the_cost_of_a_large_schema_is_estimated_quickly():
    parts = [{"$ref": f"#/allOf/{n}"} for n in range(1, 5000)] + [{"type": "object"}]
    started = CpuTimer()
    Checker().check(tool({"type": "object", "allOf": parts}), {})
    assert started.seconds() < 2


SIMPLE = {
    "type": "object",
    "properties": {
        "s": {"type": "string", "description": "d", "default": ""},
        "i": {"type": "integer"},
        "n": {"type": "number"},
        "b": {"type": "boolean"},
    },
    "required": ["s"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "arguments", "certainly"),
    [
        pytest.param(SIMPLE, {"s": "x"}, True, id="only what is required"),
        pytest.param(SIMPLE, {"s": "x", "i": 1, "n": 2, "b": True}, True, id="one of each type"),
        pytest.param(SIMPLE, {"s": "é"}, True, id="text beyond ASCII"),
        pytest.param(SIMPLE, {"s": "\ud800"}, True, id="half a character: the encoder refuses it"),
        pytest.param(SIMPLE, {"s": "x", "n": 0.5}, False, id="a fraction"),
        pytest.param(SIMPLE, {"s": "x", "i": 1.0}, False, id="a whole number with a fraction"),
        pytest.param({**SIMPLE, "required": "s"}, {"s": "x"}, False, id="required is no list"),
        pytest.param({**SIMPLE, "minProperties": 1}, {"s": "x"}, False, id="another keyword"),
        pytest.param({**SIMPLE, "properties": {"s": True}}, {"s": "x"}, False, id="a boolean schema"),
        pytest.param({**SIMPLE, "properties": {"s": {}}}, {"s": "x"}, False, id="any type"),
        pytest.param(
            {**SIMPLE, "properties": {"s": {"type": ["string", "null"]}}}, {"s": "x"}, False, id="two types"
        ),
        pytest.param(
            {**SIMPLE, "properties": {"s": {"type": "string", "minLength": 1}}},
            {"s": "x"},
            False,
            id="a length",
        ),
    ],
)
def test_arguments_that_certainly_match_need_no_validator(
    schema: dict[str, Any], arguments: dict[str, Any], certainly: bool
):
    known = tool(schema)

    assert Checker().quick_copy(known, arguments) == (arguments if certainly else None)
    assert _Input(known).check.problems(arguments) == ()


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        pytest.param(SIMPLE, {}, id="a required one is missing"),
        pytest.param(SIMPLE, {"s": 1}, id="another type"),
        pytest.param(SIMPLE, {"s": "x", "i": True}, id="a boolean for a number"),
        pytest.param(SIMPLE, {"s": "x", "b": 1}, id="a number for a boolean"),
        pytest.param(SIMPLE, {"s": "x", "z": 1}, id="an unknown one"),
        pytest.param(SIMPLE, {"s": None}, id="null"),
        pytest.param({**SIMPLE, "type": "array"}, {"s": "x"}, id="no object"),
    ],
)
def test_invalid_arguments_are_never_accepted_without_the_validator(
    schema: dict[str, Any], arguments: dict[str, Any]
):
    known = tool(schema)

    assert Checker().quick_copy(known, arguments) is None
    assert _Input(known).check.problems(arguments) != ()


def test_the_validator_is_not_loaded_for_arguments_that_certainly_match():
    code = f"""
import sys
from dragoman.calls.validate import Checker
from tests.unit.fakes import tool
assert Checker().check(tool({SIMPLE!r}), {{"s": "x", "i": 1}})
assert "jsonschema_rs" not in sys.modules
assert Checker().check(tool({SIMPLE!r}), {{"s": "x", "n": 0.5}})
assert "jsonschema_rs" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])
