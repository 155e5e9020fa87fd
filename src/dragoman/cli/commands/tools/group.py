"""`dragoman tools`: what can be called."""

from __future__ import annotations

from typing import Final

import click

from dragoman.cli.main import LazyGroup

COMMANDS: Final = {
    "list": "List the tools, or those that PATTERN fits. (The word itself may be left out.)",
    "search": "Find tools by what they do.",
    "show": "Show one tool whole.",
    "lock": "Write down every tool's definition, and show what changed since.",
}


class ToolsGroup(LazyGroup):
    """Whatever is no sub-command is a pattern: `dragoman tools 'mcp__git*'`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.table and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


command = ToolsGroup(
    "tools",
    table=COMMANDS,
    package="dragoman.cli.commands.tools",
    help="The tools of the servers you use: list, search, show, lock.",
)
