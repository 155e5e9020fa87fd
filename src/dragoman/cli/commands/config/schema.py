"""`dragoman config schema`: prints the JSON Schema of configuration files, for completion in editors."""

from __future__ import annotations

import click

from dragoman.cli.render.document import echo
from dragoman.config.schema import FILES, json_schema


@click.command("schema")
@click.argument("file", type=click.Choice(list(FILES)), required=False)
def command(file: str | None) -> None:
    """Prints the schema of FILE: project (.mcp.json), local, user or managed. Without FILE: of all four."""
    echo(json_schema(file) if file else {name: json_schema(name) for name in FILES})
