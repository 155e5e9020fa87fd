"""The group `dragoman mcp`."""

from __future__ import annotations

from typing import Final

from dragoman.cli.main import LazyGroup

COMMANDS: Final = {
    "add": "Add a server: a command with its arguments, or a URL.",
    "add-json": "Add a server from its JSON entry.",
    "remove": "Remove a server from a configuration file.",
    "list": "List the servers with their source and status.",
    "get": "Show one server.",
    "login": "Sign in to a server.",
    "logout": "Sign out: revoke and delete the tokens of a server.",
    "whoami": "Show the sign-in of a server.",
    "reconnect": "Connect to a server now, and show the result.",
    "enable": "Enable servers.",
    "disable": "Disable servers; the choice is saved.",
    "approve": "Approve or reject servers that a project defines.",
    "reset-project-choices": "Reset all approval decisions of this project.",
    "import": "Import the servers of another host.",
    "export": "Write servers into another host's file.",
}

_SHARED: Final = {
    "add-json": "add",
    "get": "list",
    "logout": "login",
    "whoami": "login",
    "disable": "enable",
    "reset-project-choices": "approve",
}

command = LazyGroup(
    "mcp",
    table=COMMANDS,
    package=__name__,
    shared=_SHARED,
    help="Manage the configured servers. `dragoman config explain` shows the files that define them.",
)
