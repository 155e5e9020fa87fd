"""The group `dragoman tasks`."""

from __future__ import annotations

from typing import Final

from dragoman.cli.main import LazyGroup

COMMANDS: Final = {
    "cancel": "Cancel a task at its server.",
    "list": "List the tasks whose results were not fetched yet.",
    "resume": "Wait for the result of a task and print it.",
    "show": "Show a task as its server describes it now.",
}

command = LazyGroup(
    "tasks",
    table=COMMANDS,
    package=__name__,
    help="Calls that continue as tasks on their servers. `dragoman call --detach` starts one.",
)
