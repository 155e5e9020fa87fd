"""`dragoman tasks show`: shows a task as its server describes it now."""

from __future__ import annotations

import click

from dragoman.cli.commands.tasks.common import show_state, task_argument
from dragoman.cli.options import json_option, yes_option


@click.command("show")
@task_argument
@json_option
@yes_option
def command(task: str, as_json: bool, yes: bool) -> None:
    """Connects to the server of TASK and shows the state of the task."""
    show_state(task, lambda host: host.tasks.get(task), as_json=as_json, yes=yes)
