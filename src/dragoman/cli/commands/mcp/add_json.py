"""`dragoman mcp add-json`: adds a server given by its JSON entry."""

from __future__ import annotations

from typing import Any, cast

import click

from dragoman.cli.commands.mcp.common import add_server, check_option, force_option
from dragoman.cli.options import json_option, scope_option
from dragoman.config import jsonc


@click.command("add-json")
@click.argument("name")
@click.argument("entry")
@scope_option
@force_option
@check_option
@json_option
def command(name: str, entry: str, scope: str | None, force: bool, check: bool, as_json: bool) -> None:
    """Adds the server NAME with ENTRY, a JSON object as in configuration files.

    \b
    dragoman mcp add-json api '{"type": "http", "url": "https://example.com/mcp"}'
    """
    try:
        parsed: Any = jsonc.parse(entry)
    except jsonc.SyntaxProblem as problem:
        raise click.UsageError(f"the entry is not JSON: column {problem.column}: {problem.reason}") from None
    if not isinstance(parsed, dict):
        raise click.UsageError("the entry must be a JSON object")
    fields = cast("dict[str, Any]", parsed)
    add_server(name, fields, scope or "local", force=force, check=check, as_json=as_json)
