"""The settings table: every number a person may turn, declared once.

I own: names, defaults, units, and how a value is read from text. Scopes and files are `config`'s;
the reference page is generated from `TABLE`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from dragoman.errors import ConfigError


class Setting(NamedTuple):
    name: str
    """The environment variable and the key in settings files."""
    default: int
    minimum: int
    unit: str
    help: str


TABLE: tuple[Setting, ...] = (
    Setting("MCP_TIMEOUT", 30_000, 1, "ms", "Time a server has to start and answer the handshake."),
    Setting("MCP_TOOL_TIMEOUT", 100_000_000, 1, "ms", "Time a tool call may take."),
    Setting("MCP_REQUEST_TIMEOUT_MS", 60_000, 1, "ms", "Time any other single request may take."),
    Setting(
        "DRAGOMAN_MESSAGE_LIMIT_BYTES",
        64 * 1024 * 1024,
        1024,
        "bytes",
        "Largest message taken from a server.",
    ),
    Setting("DRAGOMAN_PROBE_TIMEOUT_MS", 3_000, 1, "ms", "Time a server has to answer the revision probe."),
    Setting("DRAGOMAN_WRITE_STALL_MS", 30_000, 1, "ms", "Time a server may leave its input unread."),
)

_ROWS = {row.name: row for row in TABLE}


class Settings:
    """The values in force. Overrides win over the environment, the environment over defaults."""

    __slots__ = ("_values",)

    def __init__(
        self, overrides: Mapping[str, int] | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        environ = os.environ if environ is None else environ
        self._values = {row.name: _from_text(row, environ.get(row.name)) for row in TABLE}
        for name, value in (overrides or {}).items():
            if name not in _ROWS:
                raise ConfigError(f"there is no setting named {name!r}", hint=_known_names())
            self._values[name] = _checked(_ROWS[name], value)

    def __getitem__(self, name: str) -> int:
        return self._values[name]

    def seconds(self, name: str) -> float:
        """A setting declared in milliseconds, as seconds."""
        return self._values[name] / 1000


def _from_text(row: Setting, text: str | None) -> int:
    if text is None or not text.strip():
        return row.default
    try:
        return _checked(row, int(text.strip()))
    except ValueError:
        raise ConfigError(
            f"{row.name} must be a whole number of {row.unit}, not {text!r}", hint=row.help
        ) from None


def _checked(row: Setting, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < row.minimum:
        raise ConfigError(
            f"{row.name} must be at least {row.minimum} {row.unit}, not {value!r}", hint=row.help
        )
    return value


def _known_names() -> str:
    return "Known settings: " + ", ".join(row.name for row in TABLE)
