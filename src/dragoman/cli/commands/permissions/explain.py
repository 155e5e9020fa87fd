"""`dragoman permissions explain`: shows how calls of a tool are decided, and why."""

from __future__ import annotations

import sys

import click

from dragoman.cli import exit_codes
from dragoman.cli.commands.completion import complete_tool
from dragoman.cli.commands.permissions.evaluation import evaluate_call, show_evaluation
from dragoman.cli.options import json_option, mcp_config_option
from dragoman.cli.render.document import echo


@click.command("explain")
@click.argument("tool", shell_complete=complete_tool)
@mcp_config_option
@json_option
def command(tool: str, as_json: bool) -> None:
    """Lists every rule about TOOL with its file and scope, and shows which one decides.

    TOOL is a name as `dragoman tools` lists it. Rules with conditions on arguments are shown with their
    conditions; `dragoman permissions test` decides about one call. Hooks that run for such calls are listed.
    """
    evaluation = evaluate_call(tool, (), run_hooks=False)
    if as_json:
        echo(evaluation.as_json())
    else:
        show_evaluation(evaluation, with_all=True)
    sys.exit(exit_codes.OK)
