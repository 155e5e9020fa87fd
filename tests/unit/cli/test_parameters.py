"""A schema for people: every parameter a row, those inside others too."""

from typing import Any

import pytest

from dragoman.cli.render.columns import TableRow
from dragoman.cli.render.tools import ROW_LIMIT, parameters


def of(**properties: Any) -> list[TableRow]:
    return parameters({"type": "object", "properties": properties, "required": ["must"]})


@pytest.mark.parametrize(
    ("schema", "kind", "about"),
    [
        ({"type": "string"}, "string", ""),
        ({}, "any", ""),
        (True, "any", ""),
        ("nonsense", "any", ""),
        ({"type": ["string", "null"]}, "string | null", ""),
        ({"type": 3}, "any", ""),
        ({"enum": ["a", 1, None]}, '"a" | 1 | null', ""),
        ({"const": False}, "false", ""),
        ({"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "string"}]}, "string | null", ""),
        ({"type": "array", "items": {"type": "integer"}}, "array of integer", ""),
        ({"type": "array", "items": True}, "array", ""),
        ({"$ref": "#/nowhere"}, "any", ""),
        ({"$ref": "https://elsewhere"}, "any", ""),
        ({"type": "integer", "description": " How many. ", "default": 5}, "integer", "How many. (default 5)"),
        ({"type": "string", "description": "two\nlines\x1b[2J"}, "string", "two\\nlines\\x1b[2J"),
        (
            {"enum": ["New York", "Los Angeles", "Chicago"], "description": "Where."},
            "choice",
            'Where. One of: "New York" | "Los Angeles" | "Chicago"',
        ),
    ],
)
def test_the_row_of_one_parameter(schema: Any, kind: str, about: str):
    assert of(each=schema) == [TableRow("each", kind, about)]


def test_required_parameters_have_a_star():
    assert [row.typed for row in of(may={}, must={})] == ["may", "must*"]


def test_nested_parameters_have_their_own_rows():
    point = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    rows = of(place=point, path={"type": "array", "items": point})
    assert [row.typed for row in rows] == ["place", "place.x*", "path", "path[].x*"]


def test_a_reference_is_followed_and_a_recursive_one_ends():
    tree = {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}}}
    top = {"$ref": "#/$defs/tree", "description": "Root."}
    rows = parameters({"$defs": {"tree": tree}, "properties": {"top": top}})
    assert rows[0] == TableRow("top", "object", "Root.")
    assert rows[1].typed == "top.child"
    assert len(rows) < 10


def test_a_very_large_schema_is_cut_and_the_cut_is_shown():
    rows = of(**{f"p{number}": {} for number in range(ROW_LIMIT + 1)})
    assert len(rows) == ROW_LIMIT + 1
    assert "and more" in rows[-1].about


@pytest.mark.parametrize("schema", [{}, {"properties": []}, {"properties": {}, "required": 3}])
def test_a_tool_without_parameters(schema: dict[str, Any]):
    assert parameters(schema) == []
