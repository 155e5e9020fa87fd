"""Tools as plain JSON Schema, for libraries without an adapter."""

from __future__ import annotations

from typing import Any

from dragoman.catalog.tools import Tool


def tool_schema(tool: Tool) -> dict[str, Any]:
    """The tool with the keys of MCP, cleaned, with a schema that every model API accepts."""
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.model_schema}
