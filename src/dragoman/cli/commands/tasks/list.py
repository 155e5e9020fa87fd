"""`dragoman tasks list`: lists the tasks whose results were not fetched yet."""

from __future__ import annotations

import time

import click

from dragoman.calls.task_access import info_of
from dragoman.calls.task_store import TaskStore
from dragoman.cli.commands.tasks.common import line_of
from dragoman.cli.common import load_and_report
from dragoman.cli.options import json_option, server_option
from dragoman.cli.render.document import echo


@click.command("list")
@server_option
@json_option
def command(server: str | None, as_json: bool) -> None:
    """Lists calls that were left running at their servers, oldest first. Contacts no server."""
    load_and_report()
    now = time.time()
    found = [info_of(task, now) for task in TaskStore(time.time).all() if server in (None, task.server)]
    if as_json:
        echo({"tasks": found})
        return
    for info in found:
        click.echo(line_of(info))
    if not found:
        click.echo("No tasks are running.", err=True)
