"""Tools as plain JSON Schema, for every library that has no adapter of its own."""

from __future__ import annotations

from typing import Any

from dragoman.catalog.tools import Tool


def tool_schema(tool: Tool) -> dict[str, Any]:
    """The tool in the words of MCP, cleaned, with a schema that every model API takes."""
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.model_schema}
