"""One JSON document on stdout."""

from __future__ import annotations

from typing import Any

import click
import msgspec


def echo(value: Any) -> None:
    # Escaped to ASCII, so that not even inside JSON a server's text can drive a terminal.
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    click.echo("".join(char if " " <= char <= "~" or char == "\n" else _escape(char) for char in text))


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
