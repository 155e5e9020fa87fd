"""One JSON document on stdout."""

from __future__ import annotations

import json
from typing import Any

import click
import msgspec


def echo(value: Any) -> None:
    click.echo(ascii_json(msgspec.to_builtins(value), indent=2))


def ascii_json(value: Any, **options: Any) -> str:
    """The value as JSON in printable ASCII: no character of it can control the terminal, hide, or move
    another. `options`: those of `json.dumps`."""
    return json.dumps(value, **options).replace("\x7f", "\\u007f")
