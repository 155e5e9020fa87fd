"""The group `dragoman tools`."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import CompletionItem

from dragoman.cli.main import LazyGroup

LIST: Final = "list"
COMMANDS: Final = {
    LIST: "List the tools, or those that match PATTERN. (The word `list` may be omitted.)",
    "search": "Find tools by what they do.",
    "show": "Show one tool in full.",
    "lock": "Record every tool's definition in .mcp.lock, and show what has changed.",
}
HELP: Final = """The tools of the servers you use: list, search, show, lock.

Without a command the tools are listed: all, or those that match PATTERN: a part of a name, or a whole name
with * and ?. `dragoman tools list --help` shows the options.
"""


class ToolsGroup(LazyGroup):
    """Treats a first word that is not a sub-command as a pattern: `dragoman tools 'mcp__git*'`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # While a shell completes the first word, the word is not known yet: it may become a command.
        is_asked = bool(args) or not ctx.resilient_parsing
        if is_asked and (not args or (args[0] not in self.table and args[0] not in ctx.help_option_names)):
            args = [LIST, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes commands, and the options of `list`, which are accepted here, too."""
        found = super().shell_complete(ctx, incomplete)
        listing = self.get_command(ctx, LIST)
        if incomplete.startswith("-") and listing is not None:
            known = {item.value for item in found}
            more = listing.shell_complete(ctx, incomplete)
            found += [item for item in more if item.value not in known]
        return found


command = ToolsGroup(
    "tools",
    table=COMMANDS,
    package=__name__,
    subcommand_metavar="[SERVER|URL] [PATTERN] | COMMAND [ARGS]...",
    help=HELP,
)
