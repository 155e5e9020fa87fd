"""The group `dragoman permissions`."""

from __future__ import annotations

from typing import Final

from dragoman.cli.main import LazyGroup

COMMANDS: Final = {
    "list": "List every effective rule and the file that defines it.",
    "add": "Add a rule to your settings.",
    "remove": "Remove a rule from your settings.",
    "explain": "Show whether calls of a tool would be allowed, and by which rule.",
    "test": "Show whether one call would be allowed, without making it.",
}

command = LazyGroup(
    "permissions",
    table=COMMANDS,
    package=__name__,
    help="""Rules that allow, ask or deny calls: list, add, remove, explain, test.

    A rule names a server (mcp__github), a tool (mcp__github__create_issue, with * for any letters), or a
    shell command (Bash(git status)), and may have conditions: mcp__github(readOnly), mcp__gh__*(repo=acme/*).
    Any deny rule decides, from every source: you, your administrator, a project. Otherwise ask takes
    precedence over allow.
    """,
)
