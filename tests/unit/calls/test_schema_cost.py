"""What a schema can make of a value, known before it is tried."""

import contextlib
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from dragoman.calls.schema_cost import UNBOUNDED, WORK_LIMIT, cost_of_document, pattern_cost
from dragoman.calls.validate import NOT_CHECKED, TOO_MANY_PROBLEMS, Checker
from dragoman.catalog.naming import qualify
from dragoman.catalog.tools import ServerTool
from dragoman.errors import InvalidArguments
from dragoman.names import ServerName
from dragoman.wire.messages import ToolDefinition
from tests.cpu_time import CpuTimer
from tests.unit.fakes import tool

AT_ONCE_SECONDS = 0.5
"""About 0.1 s is granted; a machine may be slow."""


def each(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"type": "array", "items": schema, **more}}}


def both(schema: dict[str, Any]) -> ServerTool:
    """A tool with this schema for its arguments and its results."""
    raw = Raw(msgspec.json.encode(schema))
    about = ToolDefinition("open", raw, output_schema=raw)
    return ServerTool(ServerName("box"), qualify("box", "open"), about)


def deep(depth: int, name: str = "ab") -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {name: value}
    return value


def doubling(keyword: str) -> dict[str, Any]:
    """A document whose references are relative to it. The document around it has harmless parts of the same
    names."""
    levels = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    inner = {"allOf": [{"$ref": "#/$defs/d0"}], "$defs": {**levels, "d40": {"type": "object"}}}
    return {keyword: "http://localhost/inner", **inner}


OBJECTS = [{"k": n} for n in range(4000)]
HOSTILE: dict[str, tuple[dict[str, Any], Any]] = {
    "objects to choose from": (each({"enum": OBJECTS}), {"a": [{"k": -n} for n in range(900)]}),
    "objects to choose from, all of them there": (each({"enum": OBJECTS}), {"a": [{"k": 3999}] * 900}),
    "words to choose from": (
        each({"enum": [f"w{n}" for n in range(9000)]}),
        {"a": ["no"] * 1500},
    ),
    "a large constant": (each({"const": list(range(3000))}), {"a": [list(range(3000))] * 300}),
    "many alternatives": (each({"anyOf": [{"const": n} for n in range(1000)]}), {"a": [-1] * 1900}),
    "many that are missing": (
        each({"required": [f"p{n}" for n in range(2000)]}),
        {"a": [{"x": list(range(100))}] * 15},
    ),
    "a pattern of ten thousand states": (each({"pattern": "^(?:a{0,100}){0,100}$"}), {"a": ["a" * 1900] * 9}),
    "a pattern that backtracks": (each({"pattern": r"^(\w+\s?)*(?<=!)$"}), {"a": ["a" * 40 + "?"] * 900}),
    "names by many patterns": (
        {"type": "object", "patternProperties": {f"^(a+)+(?={n})$": {} for n in range(300)}},
        {"a" * 30 + f"{n}!": 1 for n in range(300)},
    ),
    "patterns that double with each level": (
        {"patternProperties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}},
        deep(40),
    ),
    "elements that double with each level": (
        {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"items": {"$ref": "#/$defs/x"},
         "contains": {"$ref": "#/$defs/x"}}}},
        {"a": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]},
    ),
    "dependencies that double": (
        {"$ref": "#/$defs/d0", "$defs": {
            **{f"d{n}": {"dependencies": {"a": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2}}}
               for n in range(40)},
            "d40": {"type": "object"}}},
        {"a": 1},
    ),
    "patterns that take long to compile": (
        {"type": "object", "patternProperties": {rf"\p{{L}}{{1,200}}{n}": {} for n in range(1000)}},
        {"a": 1},
    ),
    "values to be compiled": (each({"format": "regex"}), {"a": ["(?:a{0,100}){0,100}"] * 900}),
    "patterns that are large together": (
        {"type": "object", "patternProperties": {rf"\p{{L}}{{1,9}}{n}": {} for n in range(3000)}},
        {"a": 1},
    ),
    "references that double in a document of its own": (
        {"properties": {"a": doubling("$id")}, "$defs": {f"d{n}": {} for n in range(41)}},
        {"a": {}},
    ),
    "references that double in a document of draft 4": (
        {"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"a": doubling("id")},
         "$defs": {f"d{n}": {} for n in range(41)}},
        {"a": {}},
    ),
    "classes without an end": ({"patternProperties": {"[" * 100_000: {}}}, {"a": 1}),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "value"), HOSTILE.values(), ids=HOSTILE.keys())
def test_no_schema_blocks_the_event_loop(schema: dict[str, Any], value: Any):
    checker, hostile = Checker(), both(schema)
    timer = CpuTimer()
    with contextlib.suppress(InvalidArguments):
        checker.check(hostile, value)
    assert timer.seconds() < AT_ONCE_SECONDS

    timer = CpuTimer()
    checker.output_problems(hostile, value)
    assert timer.seconds() < AT_ONCE_SECONDS


def test_a_result_that_would_take_too_long_to_validate_is_reported_as_unchecked():
    schema, value = HOSTILE["objects to choose from"]

    assert Checker().output_problems(both(schema), value) == (NOT_CHECKED,)


def test_arguments_that_would_take_too_long_are_left_to_the_server():
    schema, value = HOSTILE["objects to choose from"]

    Checker().check(tool(schema), value)


def test_where_all_errors_would_take_too_long_only_the_first_is_reported():
    schema = each({"enum": [f"w{n}" for n in range(3000)]})

    with pytest.raises(InvalidArguments) as caught:
        Checker().check(tool(schema), {"a": ["no"] * 1000})
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].startswith("a.0: ")


def test_where_even_the_first_error_would_take_too_long_that_is_reported():
    schema = each({"anyOf": [{"const": n} for n in range(1000)]})

    with pytest.raises(InvalidArguments) as caught:
        Checker().check(tool(schema), {"a": [-1] * 100})
    assert caught.value.problems == (TOO_MANY_PROBLEMS,)


def test_a_pattern_that_exceeds_its_limit_counts_as_unknown():
    schema = {"properties": {"x": {"pattern": r"^(\w+\s?)*(?<=!)$"}}}

    Checker().check(tool(schema), {"x": "a" * 40 + "?"})
    with pytest.raises(InvalidArguments):
        Checker().check(tool(schema), {"x": "?"})


ORDINARY: dict[str, tuple[dict[str, Any], Any]] = {
    "an optional text": ({"properties": {"x": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}, {"x": 1}),
    "a choice of words, a thousand times": (
        each({"enum": [f"w{n}" for n in range(50)]}),
        {"a": ["w1"] * 999 + ["no"]},
    ),
    "ten thousand rows": (
        each({"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"]}),
        {"a": [{"k": 1}] * 9999 + [{}]},
    ),
    "a hundred identifiers": (
        each({"pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"}),
        {"a": ["12345678-1234-1234-1234-123456789012"] * 99 + ["x"]},
    ),
    "a name by a pattern that looks ahead": (
        {"properties": {"x": {"pattern": "^(?!.*--)[a-z0-9-]+$"}}},
        {"x": "my--name"},
    ),
    "a tree of four kinds": (
        {"properties": {"x": {"$ref": "#/$defs/e"}}, "$defs": {"e": {"anyOf": [
            {"type": "object", "required": [kind], "properties": {kind: {
                "type": "array", "items": {"$ref": "#/$defs/e"}}}} for kind in ("and", "or", "not")
        ] + [{"type": "object", "required": ["field"]}]}}},
        {"x": {"and": [{"or": [{"not": [{"field": "a"}]}]}, {"not": [{"felid": "a"}]}]}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "value"), ORDINARY.values(), ids=ORDINARY.keys())
async def test_ordinary_schemas_are_checked(schema: dict[str, Any], value: Any):
    checker = Checker()
    with pytest.raises(InvalidArguments):
        if not checker.check(tool(schema), value):
            await checker.check_large(tool(schema), value)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"type": "string"}, "y": {"enum": ["a", "b"]}}, "required": ["x"]},
        {"properties": {"x": {"anyOf": [{"$ref": "#/$defs/m"}, {"type": "null"}]}},
         "$defs": {"m": {"type": "object", "properties": {"n": {"type": "array", "items": {}}}}}},
    ],
)  # fmt: skip
def test_a_small_value_need_not_be_measured_for_an_ordinary_schema(schema: dict[str, Any]):
    cost = cost_of_document(schema)

    assert cost is not None
    assert cost.is_low
    assert cost.of({"x": "a", "y": "b"}).all_errors < WORK_LIMIT


@pytest.mark.parametrize(
    ("pattern", "least", "most"),
    [
        pytest.param("^[a-z]+$", 2, 10, id="a word"),
        pytest.param("^[0-9]{4}-[0-9]{2}$", 6, 20, id="counts in a row add up"),
        pytest.param("(?:a{0,100}){0,100}", 10_000, 20_000, id="counts in groups multiply"),
        pytest.param("((a{10}){10}){10}", 1000, 5000, id="groups in groups"),
        pytest.param("(a{100}", 100, 200, id="a group without an end"),
        pytest.param("a{,50}", 50, 100, id="a count without a beginning"),
        pytest.param("[{}]{50}", 50, 100, id="braces in a class"),
        pytest.param(r"\{50}", 1, 10, id="a brace that is none"),
        pytest.param("(?x)(?:(?:a{0,100})# )\n{0,100}", UNBOUNDED, None, id="a comment"),
        pytest.param("[](?:a{0,100}){0,100}]", UNBOUNDED, None, id="what may be a class"),
        pytest.param("[a", UNBOUNDED, None, id="a class without an end"),
        pytest.param("(?=a)b", 1000, 10_000, id="looking ahead"),
        pytest.param(r"(a)\1", 1000, 10_000, id="referring back"),
        pytest.param("a++", 1000, 10_000, id="without giving back"),
    ],
)
def test_the_cost_of_a_pattern_is_the_number_of_its_states(pattern: str, least: int, most: int | None):
    assert least <= pattern_cost(pattern) <= (most or least)
