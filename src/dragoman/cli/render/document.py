"""One JSON document on stdout."""

from __future__ import annotations

import json
from typing import Any

import click
import msgspec


def echo(value: Any) -> None:
    # Escaped to ASCII, so that not even inside JSON a server's text can drive a terminal.
    click.echo(json.dumps(msgspec.to_builtins(value), indent=2).replace("\x7f", "\\u007f"))
