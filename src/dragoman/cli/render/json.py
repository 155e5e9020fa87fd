"""Values as JSON for programs. The keys are stable."""

from __future__ import annotations

from typing import Any

from dragoman.calls.outcome import CallOutcome
from dragoman.catalog.tokens import cost_of
from dragoman.catalog.tools import ServerTool
from dragoman.cli.render.document import echo
from dragoman.content.blocks import UnknownBlock
from dragoman.errors import ConfigFileError, ConnectError, DragomanError, MalformedReply
from dragoman.servers.status import ServerStatus

__all__ = ["echo", "error", "outcome", "server", "tool"]


def server(view: ServerStatus) -> dict[str, Any]:
    return {
        "name": view.name,
        "scope": view.scope,
        "source": view.source,
        "transport": view.transport,
        "status": view.status,
        "reason": view.reason,
        "protocolVersion": view.protocol_version,
        "serverInfo": view.server_info,
        "toolCount": view.tool_count,
        "problems": view.problems,
        "error": error(view.error) if view.error is not None else None,
    }


def tool(value: ServerTool, *, cost: bool = False) -> dict[str, Any]:
    """The tool as its server defines it. `cost`: with its size in a model's context."""
    return {
        "name": value.name,
        "server": value.server,
        "tool": value.wire_name,
        "title": value.definition.title or value.title,
        "description": value.definition.description or "",
        "inputSchema": value.input_schema,
        "annotations": value.annotations,
        **({"tokens": cost_of(value)} if cost else {}),
    }


def outcome(value: CallOutcome) -> dict[str, Any]:
    blocks = [block.value if isinstance(block, UnknownBlock) else block for block in value.content]
    return {
        "server": value.server,
        "tool": value.tool,
        "isError": value.is_error,
        "error": error(value.error) if value.error is not None else None,
        "text": value.text,
        "content": blocks,
        **_structured(value),
        "meta": value.meta,
        **({} if value.task is None else {"task": value.task}),
        "durationSeconds": round(value.duration_seconds, 6),
    }


def _structured(value: CallOutcome) -> dict[str, Any]:
    """The structured content; one with a value that Python cannot represent is replaced by a description."""
    if not value.has_structured:
        return {}
    try:
        return {"structured": value.structured}
    except MalformedReply as problem:
        return {"structured": None, "problems": [*value.problems, str(problem)]}


def error(value: DragomanError) -> dict[str, Any]:
    described: dict[str, Any] = {"code": value.code, "message": str(value), "hint": value.hint}
    if isinstance(value, ConnectError):
        described |= {
            "phase": value.phase,
            "cause": value.cause,
            "exitCode": value.exit_code,
            "stderrTail": value.stderr_tail,
        }
    if isinstance(value, ConfigFileError):
        described |= {"file": value.file, "line": value.line, "column": value.column}
    return described
