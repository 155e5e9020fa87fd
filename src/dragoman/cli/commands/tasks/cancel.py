"""`dragoman tasks cancel`: cancels a task at its server."""

from __future__ import annotations

import click

from dragoman.cli.commands.tasks.common import show_state, task_argument
from dragoman.cli.options import json_option, yes_option


@click.command("cancel")
@task_argument
@json_option
@yes_option
def command(task: str, as_json: bool, yes: bool) -> None:
    """Connects to the server of TASK, asks it to cancel the task, and removes the task from the list."""
    show_state(task, lambda host: host.tasks.cancel(task), as_json=as_json, yes=yes)
