"""`dragoman config`: what configuration says, and why."""

from __future__ import annotations

from typing import Final

from dragoman.cli.main import LazyGroup

COMMANDS: Final = {
    "explain": "For every value in effect: its file, its scope, and the values it beat.",
    "plan": "What has changed since a host was last started here.",
    "schema": "Print the JSON Schema of a configuration file.",
}

command = LazyGroup(
    "config",
    table=COMMANDS,
    package="dragoman.cli.commands.config",
    help="See what configuration says, and why. Starts nothing.",
)
