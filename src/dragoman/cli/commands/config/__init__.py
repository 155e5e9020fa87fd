"""The group `dragoman config`."""

from __future__ import annotations

from typing import Final

from dragoman.cli.main import LazyGroup

COMMANDS: Final = {
    "explain": "Show every effective value with its file and scope, and the values it overrides.",
    "plan": "Show what has changed since a host was last started here.",
    "schema": "Print the JSON Schema of a configuration file.",
}

command = LazyGroup(
    "config",
    table=COMMANDS,
    package=__name__,
    help="Show the effective configuration and where it comes from. Starts no server.",
)
