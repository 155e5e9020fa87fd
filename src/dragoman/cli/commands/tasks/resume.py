"""`dragoman tasks resume`: waits for the result of a task and prints it, as `dragoman call` does."""

from __future__ import annotations

from pathlib import Path

import click

from dragoman.cli.commands.call import exit_code_of, output_option, show_result, timeout_option
from dragoman.cli.commands.tasks.common import known_task, task_argument, with_server_of
from dragoman.cli.options import json_option, yes_option
from dragoman.cli.render.progress import ProgressLine
from dragoman.host import Host


@click.command("resume")
@task_argument
@json_option
@output_option
@timeout_option
@yes_option
def command(task: str, as_json: bool, output: Path | None, timeout: float | None, yes: bool) -> None:
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
