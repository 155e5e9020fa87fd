"""`dragoman tasks`: calls that continue as tasks on their servers."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn

import click

from dragoman.calls.task_access import TaskInfo, info_of
from dragoman.calls.task_store import RunningTask, TaskStore
from dragoman.cleaning import one_line
from dragoman.cli import exit_codes
from dragoman.cli.commands.call import exit_code_of, output_option, show_result, timeout_option
from dragoman.cli.common import (
    load_and_report,
    load_with_servers,
    raise_if_not_connected,
    run_with_host,
    wait_for_servers,
)
from dragoman.cli.main import CommandGroup
from dragoman.cli.options import json_option, server_option, yes_option
from dragoman.cli.render.document import echo
from dragoman.cli.render.progress import ProgressLine
from dragoman.cli.render.text import report_error
from dragoman.cli.terminal_interaction import CommandLineUser
from dragoman.errors import DragomanError, TaskNotFound
from dragoman.host import Host


@click.group("tasks", cls=CommandGroup)
def command() -> None:
    """Calls that continue as tasks on their servers. `dragoman call --detach` starts one."""


def complete_task(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [task.id for task in TaskStore(time.time).all() if task.id.startswith(incomplete)]


task_argument = click.argument("task", metavar="TASK", shell_complete=complete_task)


def known_task(task: str) -> RunningTask:
    """The task of this id; `TaskNotFound` if there is none."""
    load_and_report()
    found = TaskStore(time.time).find(task)
    if found is None:
        raise TaskNotFound("", task, "no running task has this id")
    return found


def with_server_of(task: RunningTask, work: Callable[[Host], Awaitable[int]], *, yes: bool) -> NoReturn:
    """Connects to the server of a task, does the work, and exits with the code that it returns."""
    loaded = load_with_servers(task.server)

    async def connected(host: Host) -> int:
        await wait_for_servers(host, silent=True)
        raise_if_not_connected(host)
        return await work(host)

    user = CommandLineUser(loaded.sources, assumes_yes=yes)
    sys.exit(run_with_host(loaded.sources, connected, only=[task.server], interaction=user, audit=True))


def show_state(
    task: str, request: Callable[[Host], Awaitable[TaskInfo]], *, as_json: bool, yes: bool
) -> NoReturn:
    """Makes a request about a task, and shows the task."""

    async def work(host: Host) -> int:
        try:
            info = await request(host)
        except DragomanError as error:
            report_error(error, as_json=as_json)
            return exit_codes.for_error(error)
        if as_json:
            echo(info)
        else:
            click.echo(line_of(info))
        return exit_codes.OK

    with_server_of(known_task(task), work, yes=yes)


def line_of(info: TaskInfo) -> str:
    age = _duration(time.time() - info.created)
    left = "" if info.expires is None else f", kept for {_duration(info.expires - time.time())}"
    status = {"unknown": "status not requested yet"}.get(info.status, info.status)
    if info.status == "expired":
        left = ""
    message = f": {one_line(info.message, 200)}" if info.message else ""
    return f"{one_line(info.id, 40)}  {one_line(info.tool, 100)}  {status}{message}  (began {age} ago{left})"


def _duration(seconds: float) -> str:
    seconds = max(0.0, seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


@command.command("cancel", short_help="Cancel a task at its server.")
@task_argument
@json_option
@yes_option
def cancel(task: str, as_json: bool, yes: bool) -> None:
    """Connects to the server of TASK, asks it to cancel the task, and removes the task from the list."""
    show_state(task, lambda host: host.tasks.cancel(task), as_json=as_json, yes=yes)


@command.command("list", short_help="List the tasks whose results were not fetched yet.")
@server_option
@json_option
def list_tasks(server: str | None, as_json: bool) -> None:
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


@command.command("resume", short_help="Wait for the result of a task and print it.")
@task_argument
@json_option
@output_option
@timeout_option
@yes_option
def resume(task: str, as_json: bool, output: Path | None, timeout: float | None, yes: bool) -> None:
    """Connects to the server of TASK, waits for the result and prints it. Rules apply as for a call of its
    tool.

    When the time limit passes, or after Ctrl-C, the task is cancelled.
    """

    async def work(host: Host) -> int:
        with ProgressLine() as line:
            outcome = await host.tasks.result(
                task, timeout_seconds=timeout, on_progress=line.update, raw=True
            )
        show_result(outcome, as_json=as_json, output=output)
        return exit_code_of(outcome)

    with_server_of(known_task(task), work, yes=yes)


@command.command("show", short_help="Show a task as its server describes it now.")
@task_argument
@json_option
@yes_option
def show(task: str, as_json: bool, yes: bool) -> None:
    """Connects to the server of TASK and shows the state of the task."""
    show_state(task, lambda host: host.tasks.get(task), as_json=as_json, yes=yes)
