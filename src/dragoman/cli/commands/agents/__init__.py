"""The group `dragoman agents`."""

from __future__ import annotations

from typing import Final

from dragoman.cli.main import LazyGroup

COMMANDS: Final = {
    "approve": "Approve an agent that came with a project or a plugin.",
    "list": "List the agents that are defined in files.",
}

command = LazyGroup(
    "agents",
    table=COMMANDS,
    package=__name__,
    help="Agents that are defined in files. `dragoman --agent NAME` talks to one.",
)
