"""`dragoman call`: one tool, one result."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dragoman.calls.outcome import CallOutcome
from dragoman.catalog.naming import LIMIT, prefix
from dragoman.cli import exit_codes
from dragoman.cli.asking import CommandLineUser
from dragoman.cli.opening import opened
from dragoman.cli.options import (
    frozen_option,
    json_option,
    mcp_config_option,
    parse_arguments,
    run_with_host,
    yes_option,
)
from dragoman.cli.render import json, text
from dragoman.cli.render.progress import ProgressLine
from dragoman.config.load import Configuration
from dragoman.errors import NotConnected, UnknownTool
from dragoman.host import Host


@click.command("call", short_help="Call one tool and print its result.")
@click.argument("tool")
@click.argument("arguments", nargs=-1)
@mcp_config_option
@json_option
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Time limit.")
@yes_option
@frozen_option
def command(
    tool: str,
    arguments: tuple[str, ...],
    given: tuple[str, ...],
    strict: bool,
    as_json: bool,
    timeout: float | None,
    yes: bool,
    frozen: Path | None,
) -> None:
    """Calls TOOL (as `dragoman tools` names it) with ARGUMENTS: one JSON object, or key=value words.

    Typing this command is a yes to the call. Only where a rule wants a question, or the tool itself says that
    it may destroy things, you are asked once more; in a script give --yes. Exit codes: 0 success, 1 the tool
    reports an error, 2 the arguments do not fit, 4 a server is not connected, 5 no such tool, 6 not allowed,
    7 time limit.
    """
    sources, configuration = opened(given, strict)
    only = servers_of(tool, configuration)

    async def work(host: Host) -> CallOutcome:
        await host.ready()
        found = next((known for known in host.tools(include_app_tools=True) if known.name == tool), None)
        if found is None:
            raise_if_failed(host)
        words = parse_arguments(arguments, found.input_schema if found else {})
        with ProgressLine() as line:
            return await host.call(tool, words, timeout_seconds=timeout, on_progress=line.update, raw=True)

    user = CommandLineUser(sources, says_yes=yes)
    outcome = run_with_host(sources, work, only=only, frozen=frozen, interaction=user)
    if as_json:
        json.echo(json.outcome(outcome))
    elif outcome.error is not None:
        text.show_error(outcome.error)
    else:
        text.show_outcome(outcome)
    if outcome.error is not None:
        sys.exit(exit_codes.for_error(outcome.error))
    sys.exit(exit_codes.TOOL_ERROR if outcome.is_error else exit_codes.OK)


def servers_of(tool: str, configuration: Configuration) -> list[str] | None:
    """Only the servers that can have the tool, by its name; all of them if none fits."""
    fitting = [name for name in configuration.servers if tool.startswith(prefix(name))]
    if not fitting and len(tool) < LIMIT and configuration.connectors is None:
        raise UnknownTool(tool)
    return fitting or None


def raise_if_failed(host: Host) -> None:
    """A tool may be missing only because its server is; then that is the error to tell."""
    for view in host.servers.values():
        if view.error is not None:
            raise view.error
        if view.status in ("pending", "disabled"):
            hint = "`dragoman mcp approve` asks about it." if view.status == "pending" else None
            raise NotConnected(view.name, view.status, view.reason, hint=hint)
