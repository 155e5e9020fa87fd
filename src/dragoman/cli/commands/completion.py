"""`dragoman completion`: prints the completion script for a shell, and provides the completions.

No server is started for a completion: the names of tools are those that were listed last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from click.shell_completion import CompletionItem, get_completion_class

from dragoman import paths
from dragoman.cli.main import COMPLETION, cli
from dragoman.config.file_reading import read_bytes
from dragoman.errors import ConfigFileError, DragomanError
from dragoman.wire.codec import DECODE_ERRORS

if TYPE_CHECKING:
    from dragoman.host import Host


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Prints the completion script for SHELL. Put one of these lines where your shell reads its settings:

    \b
    eval "$(dragoman completion bash)"          in ~/.bashrc
    eval "$(dragoman completion zsh)"           in ~/.zshrc
    dragoman completion fish | source           in ~/.config/fish/config.fish

    Names of servers come from your configuration files. Names of tools are those that `dragoman tools` or
    `dragoman call` listed last: completion starts no server.
    """
    found = get_completion_class(shell)
    assert found is not None  # it is one of the choices
    click.echo(found(cli, {}, "dragoman", COMPLETION).source())


def complete_server(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Completes the names of configured servers."""
    return _items(_configured(), incomplete)


def complete_tool(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Completes the first word of a call: tools that were listed last, and servers."""
    if context.params.get(parameter.name or ""):
        return []
    servers = _configured()
    known = _remembered()
    tools = (tool for server in servers for tool in known.get(server, ()))
    return _items([*tools, *servers], incomplete)


def _items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    # Names that a shell, a terminal or a command could interpret as something else (an option) are left out.
    safe = (name for name in names if re.fullmatch(r"[\w.@:+][\w.@:+-]*", name, re.ASCII))
    return [CompletionItem(name) for name in dict.fromkeys(safe) if name.startswith(incomplete)]


def _configured() -> list[str]:
    from dragoman.config.load import load
    from dragoman.config.scopes import Sources

    try:
        return list(load(Sources.here()).servers)
    except (DragomanError, OSError):
        return []


def _remembered() -> dict[str, list[str]]:
    try:
        return msgspec.json.decode(read_bytes(_names_file()) or b"{}", type=dict[str, list[str]])
    except (ConfigFileError, *DECODE_ERRORS):
        return {}


def remember_tools(host: Host) -> None:
    """Saves the names of tools for completion, except those of servers that are given on the command line."""
    tools = host.tools(include_app_tools=True, include_denied=True)
    seen = {
        view.name: [str(tool.name) for tool in tools if tool.server == view.name]
        for view in host.servers.values()
        if view.status == "connected" and view.scope != "dynamic"
    }
    known = _remembered()
    if not seen or all(known.get(name) == names for name, names in seen.items()):
        return
    from dragoman.atomic_write import write_cache

    write_cache(_names_file(), msgspec.json.encode({**known, **seen}))


def _names_file() -> Path:
    return paths.state_dir() / "tool-names.json"
