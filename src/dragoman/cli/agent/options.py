"""The options of `dragoman` without a command, and those that other commands share with it.

Every command loads this module, so it imports nothing that takes long to load.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

MODES: Final = ("default", "auto", "plan", "dontAsk", "bypassPermissions")


MCP_CONFIG: Final = "--mcp-config"
MCP_CONFIG_KEY: Final = "dragoman.mcp_config"
STRICT_KEY: Final = "dragoman.strict_mcp_config"
ADD_DIR_KEY: Final = "dragoman.add_dir"
"""The keys of the context under which the values of these options are stored."""


def remember(key: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that stores the option's value in the context, where `cli/options.py` finds it."""

    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        context.meta[key] = value
        return value

    return keep


MCP_CONFIG_OPTIONS: Final = (
    click.option(
        "--strict-mcp-config",
        is_flag=True,
        expose_value=False,
        callback=remember(STRICT_KEY),
        help="Use only the servers of --mcp-config.",
    ),
    click.option(
        MCP_CONFIG,
        multiple=True,
        metavar="FILE|JSON|URL",
        expose_value=False,
        callback=remember(MCP_CONFIG_KEY),
        help='More servers: a file, JSON text with "mcpServers", a URL, or the word demo. Repeatable.',
    ),
)
"""The options that add servers, for this command and for others."""

_OPTIONS: Final = (
    click.option(
        "-p",
        "--print",
        "prompt",
        is_flag=False,
        flag_value="-",
        metavar="[PROMPT]",
        help="Answer one prompt and exit. Without PROMPT, reads it from stdin.",
    ),
    click.option("--output-format", type=click.Choice(["text", "json", "stream-json"]), default="text"),
    click.option("--input-format", type=click.Choice(["text", "stream-json"]), default="text"),
    click.option(
        "--model",
        metavar="PROVIDER:NAME",
        help="The model. Default: DRAGOMAN_MODEL, or a model of the first provider whose API key is set.",
    ),
    click.option(
        "--base-url", metavar="URL", help="The URL of another endpoint: Ollama, vLLM, llama.cpp, a proxy."
    ),
    click.option(
        "--permission-mode", type=click.Choice(MODES), help="How to decide about calls that match no rule."
    ),
    click.option(
        "--allowed-tools", multiple=True, metavar="RULE", help="Allow calls that match RULE. Repeatable."
    ),
    click.option(
        "--disallowed-tools", multiple=True, metavar="RULE", help="Deny calls that match RULE. Repeatable."
    ),
    click.option(
        "--add-dir",
        multiple=True,
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        callback=remember(ADD_DIR_KEY),
        help="Another folder that built-in tools may read, and that servers get as a root. Repeatable.",
    ),
    click.option("--agent", metavar="NAME", help="The agent to talk to; `dragoman agents list` shows all."),
    click.option("--max-turns", type=click.IntRange(1), help="The most responses of the model to a prompt."),
    click.option(
        "-c",
        "--continue",
        "continue_last",
        is_flag=True,
        help="Continue the last conversation in this folder.",
    ),
    click.option(
        "--plain", is_flag=True, help="Show text line by line, for screen readers and simple terminals."
    ),
    click.option("-r", "--resume", metavar="ID", help="Continue the conversation with this id."),
    *reversed(MCP_CONFIG_OPTIONS),
)


def conversation_options(function: F) -> F:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
