"""The options of `dragoman` without a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

MODES: Final = ("default", "auto", "plan", "dontAsk", "bypassPermissions")


def _kept(key: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that stores the value in the context, where `cli/options.py` finds it. (That module is not
    imported here: it would slow down the start of every command.)"""

    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        context.meta[key] = value
        return value

    return keep


_OPTIONS: Final = (
    click.option(
        "-p",
        "--print",
        "prompt",
        is_flag=False,
        flag_value="-",
        metavar="[PROMPT]",
        help="Answer one prompt and end. Without one it is read from stdin.",
    ),
    click.option("--output-format", type=click.Choice(["text", "json", "stream-json"]), default="text"),
    click.option("--input-format", type=click.Choice(["text", "stream-json"]), default="text"),
    click.option(
        "--model", metavar="PROVIDER:NAME", help="The model; otherwise DRAGOMAN_MODEL, or by your keys."
    ),
    click.option(
        "--base-url", metavar="URL", help="An endpoint of your own: Ollama, vLLM, llama.cpp, a proxy."
    ),
    click.option(
        "--permission-mode", type=click.Choice(MODES), help="How calls are decided that no rule decides."
    ),
    click.option("--allowed-tools", multiple=True, metavar="RULE", help="Allow such calls. Repeatable."),
    click.option("--disallowed-tools", multiple=True, metavar="RULE", help="Deny such calls. Repeatable."),
    click.option(
        "--add-dir",
        multiple=True,
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        callback=_kept("dragoman.add_dir"),
        help="Another folder that built-in tools may read, and servers are given as a root. Repeatable.",
    ),
    click.option("--agent", metavar="NAME", help="The agent of a file; `dragoman agents list` shows them."),
    click.option("--max-turns", type=click.IntRange(1), help="Responses of the model to one prompt."),
    click.option(
        "-c", "--continue", "continue_last", is_flag=True, help="Continue the last conversation here."
    ),
    click.option("--plain", is_flag=True, help="Line by line: for screen readers and simple terminals."),
    click.option("-r", "--resume", metavar="ID", help="Continue a conversation."),
    click.option(
        "--mcp-config",
        multiple=True,
        metavar="FILE|JSON|URL",
        expose_value=False,
        callback=_kept("dragoman.mcp_config"),
        help="More servers, as for other commands.",
    ),
    click.option(
        "--strict-mcp-config",
        is_flag=True,
        expose_value=False,
        callback=_kept("dragoman.strict_mcp_config"),
        help="Only the servers of --mcp-config.",
    ),
)


def conversation_options(function: F) -> F:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
