"""`dragoman permissions test`: shows how one call is decided."""

from __future__ import annotations

import sys
from typing import Final

import click

from dragoman.cli import exit_codes
from dragoman.cli.commands.completion import complete_tool
from dragoman.cli.commands.permissions.evaluation import evaluate_call, show_evaluation
from dragoman.cli.options import json_option, mcp_config_option
from dragoman.cli.render.document import echo

CODES: Final = {"allow": exit_codes.OK, "deny": exit_codes.REFUSED, "ask": exit_codes.WOULD_ASK}


@click.command("test")
@click.argument("tool", shell_complete=complete_tool)
@click.argument("arguments", nargs=-1)
@mcp_config_option
@json_option
def command(tool: str, arguments: tuple[str, ...], as_json: bool) -> None:
    """Decides about a call of TOOL with ARGUMENTS (one JSON object, or key=value pairs) as a host would.

    No tool is called, but PreToolUse hooks are run. For the shell:
    `dragoman permissions test Bash 'git status && make'`.
    Exit codes: 0 allowed, 6 refused, 8 a question would be asked.
    """
    evaluation = evaluate_call(tool, arguments, run_hooks=True)
    if as_json:
        echo(evaluation.as_json())
    else:
        show_evaluation(evaluation)
    sys.exit(CODES[evaluation.verdict.behaviour])
