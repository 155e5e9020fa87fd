"""`dragoman mcp`: the servers a person uses."""

from __future__ import annotations

from typing import Final

from dragoman.cli.main import LazyGroup

COMMANDS: Final = {
    "add": "Add a server: a command with its arguments, or a URL.",
    "add-json": "Add a server from its JSON entry.",
    "remove": "Remove a server from a configuration file.",
    "list": "List the servers, where they come from, and how they are.",
    "get": "Show one server.",
    "enable": "Switch servers on again.",
    "disable": "Switch servers off; the choice is remembered.",
    "approve": "Say yes or no to servers that came with a project.",
    "reset-project-choices": "Forget every yes and no given in this project.",
    "import": "Take over the servers of another host.",
    "export": "Write servers into another host's file.",
}

command = LazyGroup(
    "mcp",
    table=COMMANDS,
    package="dragoman.cli.commands.mcp",
    help="Manage the servers you use. They stand in files: see `dragoman config explain`.",
)
