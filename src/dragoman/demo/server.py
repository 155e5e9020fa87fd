"""The demo server: a sum, a slow count, an image, a large table and an error; resources about services; a
prompt for release notes."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

from dragoman.demo.picture import paint
from dragoman.testing.server import InMemoryServer, ToolContext

Json = dict[str, Any]

_NUMBER = {"type": "number"}
_SERVICES = ("api", "billing", "mail", "search", "web", "worker")
_REGIONS = ("eu-north", "eu-west", "us-east", "us-west")
_VERSIONS = ("1.0", "1.1", "2.0")


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
        description="Counts slowly and reports its progress.",
        properties={
            "to": {"type": "integer", "minimum": 1, "maximum": 1000},
            "seconds": {
                "type": "number",
                "minimum": 0,
                "maximum": 60,
                "description": "Duration in seconds.",
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
        description="Lists deployments of six services as CSV, with as many rows as requested.",
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
    server.contents.add_resource(
        "demo://services",
        "\n".join(_SERVICES),
        title="Services",
        description="The six services of the table.",
        mimeType="text/plain",
    )
    server.contents.add_template(
        "demo://services/{service}",
        lambda values: f"The service {values['service']} runs in {', '.join(_REGIONS)}.",
        {"service": _SERVICES},
        title="One service",
        description="The regions that a service runs in.",
    )
    server.contents.add_prompt(
        "release_notes",
        _release_notes,
        [
            {"name": "version", "description": "The version that is released.", "required": True},
            {"name": "service", "description": "The service that is released; all if not given."},
        ],
        {"version": _VERSIONS, "service": _SERVICES},
        description="Asks for release notes of a version.",
    )
    return server


def _release_notes(arguments: Mapping[str, str]) -> str:
    what = f" of the service {arguments['service']}" if arguments.get("service") else ""
    return f"Write short release notes for version {arguments['version']}{what}."


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
        {"type": "text", "text": "A sunset over water."},
        {"type": "image", "data": data, "mimeType": "image/png"},
    ]


def _table(arguments: Json, context: ToolContext) -> str:
    lines = ["number,service,region,seconds"]
    for number in range(arguments.get("rows", 1000)):
        service = _SERVICES[number % len(_SERVICES)]
        region = _REGIONS[number * 5 % len(_REGIONS)]
        lines.append(f"{number + 1},{service},{region},{number * 7919 % 1000}")
    return "\n".join(lines)


def _fail(arguments: Json, context: ToolContext) -> Json:
    reason = arguments.get("reason", "the deployment was rejected")
    return {"content": [{"type": "text", "text": f"It did not work: {reason}."}], "isError": True}
