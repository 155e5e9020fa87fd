"""T342: tool definitions that a gateway gives to its clients hide nothing in descriptions."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from dragoman.catalog.tools import ServerTool
from dragoman.gateway.results import listed_tool
from dragoman.names import QualifiedName, ServerName
from dragoman.wire.messages import ToolDefinition

pytestmark = pytest.mark.requirement("CAT-2")
HIDDEN = "\u202e\u200b\U000e0041\x1b[31m"


def schema(hidden: str) -> dict[str, Any]:
    inner = {"type": "string", "title": f"t{hidden}", "enum": ["a\u200bb"], "default": "a\u200bb"}
    described = {"type": "object", "properties": {"description": inner}, "description": f"d{hidden}"}
    return {
        "type": "object",
        "$comment": f"c{hidden}",
        "properties": {"description": inner, "list": {"type": "array", "items": described}},
        "$defs": {"x": {"anyOf": [described]}},
    }


def listed(hidden: str) -> dict[str, Any]:
    raw = Raw(msgspec.json.encode(schema(hidden)))
    definition = ToolDefinition(
        "tool",
        raw,
        f"title{hidden}",
        f"text{hidden}",
        annotations={"title": f"at{hidden}"},
        output_schema=raw,
    )
    return listed_tool(
        "box__tool", ServerTool(ServerName("box"), QualifiedName("mcp__box__tool"), definition), {}
    )


def test_t342_labels_are_cleaned_and_names_and_values_are_unchanged():
    assert listed(HIDDEN) == listed("")
    assert listed("")["inputSchema"] == schema("")


@pytest.mark.parametrize("depth", [10, 200, 450, 2000])
def test_t342_an_endless_schema_does_not_affect_the_list(depth: int):
    inner = msgspec.json.encode({"description": HIDDEN})
    raw = Raw(b'{"properties":{"x":' * depth + inner + b"}}" * depth)
    tool = ServerTool(ServerName("box"), QualifiedName("mcp__box__tool"), ToolDefinition("tool", raw))
    shown = msgspec.json.encode(listed_tool("box__tool", tool, {})).decode()
    assert HIDDEN not in shown
    assert "\u202e" not in shown
