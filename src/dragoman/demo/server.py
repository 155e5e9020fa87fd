"""The demo server: a sum, a slow count, a picture, a table, an error; rivers to read, a letter to write."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

from dragoman.demo.picture import paint
from dragoman.testing.server import InMemoryServer, ToolContext

Json = dict[str, Any]

_NUMBER = {"type": "number"}
_RIVERS = ("Danube", "Euphrates", "Maritsa", "Nile", "Sava", "Tigris")
_GOODS = ("amber", "cotton", "glass", "paper", "salt", "silk", "tea")


def demo_server() -> InMemoryServer:
    server = InMemoryServer("dragoman-demo", instructions="Small tools that show what an MCP server can do.")
    read_only: Json = {"annotations": {"readOnlyHint": True, "openWorldHint": False}}
    server.add_tool(
        "add",
        _add,
        description="Adds two numbers.",
        properties={"a": _NUMBER, "b": _NUMBER},
        required=("a", "b"),
        title="Sum",
        outputSchema={"type": "object", "properties": {"sum": _NUMBER}, "required": ["sum"]},
        **read_only,
    )
    server.add_tool(
        "count",
        _count,
        description="Counts slowly, telling how far it has come.",
        properties={
            "to": {"type": "integer", "minimum": 1, "maximum": 1000},
            "seconds": {
                "type": "number",
                "minimum": 0,
                "maximum": 60,
                "description": "How long it should take.",
            },
        },
        required=("to",),
        title="Slow count",
        **read_only,
    )
    server.add_tool(
        "picture",
        _picture,
        description="Paints a small picture (PNG).",
        properties={"size": {"type": "integer", "minimum": 8, "maximum": 256}},
        title="Picture",
        **read_only,
    )
    server.add_tool(
        "table",
        _table,
        description="A table of trade along six rivers, as large as you like.",
        properties={"rows": {"type": "integer", "minimum": 1, "maximum": 200_000}},
        title="Large table",
        **read_only,
    )
    server.add_tool(
        "fail",
        _fail,
        description="Fails, to show what an error looks like.",
        properties={"reason": {"type": "string"}},
        title="Error",
        **read_only,
    )
    server.shelf.add_resource(
        "demo://rivers",
        "\n".join(_RIVERS),
        title="Rivers",
        description="The six rivers of the table.",
        mimeType="text/plain",
    )
    server.shelf.add_template(
        "demo://rivers/{river}",
        lambda gaps: f"Along the {gaps['river']} they trade in {', '.join(_GOODS)}.",
        {"river": _RIVERS},
        title="One river",
        description="What is traded along a river.",
    )
    server.shelf.add_prompt(
        "letter",
        _letter,
        [
            {"name": "goods", "description": "What is to be sold.", "required": True},
            {"name": "river", "description": "Along which river."},
        ],
        {"goods": _GOODS, "river": _RIVERS},
        description="A letter that offers goods to a merchant.",
    )
    return server


def _letter(arguments: Mapping[str, str]) -> str:
    where = f" along the {arguments['river']}" if arguments.get("river") else ""
    return f"Write a short letter that offers {arguments['goods']} to a merchant{where}."


def _add(arguments: Json, context: ToolContext) -> Json:
    total = arguments["a"] + arguments["b"]
    return {"content": [{"type": "text", "text": f"{total:g}"}], "structuredContent": {"sum": total}}


async def _count(arguments: Json, context: ToolContext) -> str:
    to = arguments["to"]
    pause = arguments.get("seconds", 2) / to
    for number in range(1, to + 1):
        await asyncio.sleep(pause)
        context.progress(number, to, f"{number} of {to}")
    return f"counted to {to}"


def _picture(arguments: Json, context: ToolContext) -> list[Json]:
    data = base64.b64encode(paint(arguments.get("size", 32))).decode()
    return [
        {"type": "text", "text": "A dragoman between two courts at dusk."},
        {"type": "image", "data": data, "mimeType": "image/png"},
    ]


def _table(arguments: Json, context: ToolContext) -> str:
    lines = ["year,river,good,bales"]
    for number in range(arguments.get("rows", 1000)):
        river = _RIVERS[number % len(_RIVERS)]
        good = _GOODS[number * 5 % len(_GOODS)]
        lines.append(f"{1453 + number % 400},{river},{good},{number * 7919 % 1000}")
    return "\n".join(lines)


def _fail(arguments: Json, context: ToolContext) -> Json:
    reason = arguments.get("reason", "the caravan was held at the border")
    return {"content": [{"type": "text", "text": f"It did not work: {reason}."}], "isError": True}
