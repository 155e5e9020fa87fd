"""`dragoman permissions`: which calls are made, asked or refused, and why."""

from __future__ import annotations

from typing import Final

from dragoman.cli.main import LazyGroup

COMMANDS: Final = {
    "list": "List every rule that counts, and where it stands.",
    "add": "Write a rule to your settings.",
    "remove": "Take a rule out of your settings.",
    "explain": "Say what would become of a tool's calls, and by which rule.",
    "test": "Say what would become of one call, without making it.",
}

command = LazyGroup(
    "permissions",
    table=COMMANDS,
    package="dragoman.cli.commands.permissions",
    help="""Rules that allow, ask or deny calls: list, add, remove, explain, test.

    A rule names a server (mcp__github), a tool (mcp__github__create_issue, with * for any letters), or a
    shell command (Bash(git status)), and may ask for more: mcp__github(readOnly), mcp__gh__*(repo=acme/*).
    Any deny rule wins, from every source: you, your administrator, a project. Otherwise ask beats allow.
    """,
)
