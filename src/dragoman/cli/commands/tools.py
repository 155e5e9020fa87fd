"""`dragoman tools`: lists, finds, shows and locks tools."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Collection
from pathlib import Path

import click
from click.shell_completion import CompletionItem
from msgspec import Struct

from dragoman.catalog import lock
from dragoman.catalog.changes import describe
from dragoman.catalog.search import Index
from dragoman.catalog.tools import ServerTool, Tool
from dragoman.cleaning import one_line
from dragoman.cli import exit_codes
from dragoman.cli.commands.completion import complete_server, complete_tool, remember_tools
from dragoman.cli.common import (
    all_tools,
    find_tool,
    list_exit_code,
    load_with_servers,
    raise_if_not_connected,
    run_with_host,
    servers_with_tool,
    show_unconnected,
    unknown_tool,
    wait_for_servers,
)
from dragoman.cli.main import CommandGroup
from dragoman.cli.options import (
    frozen_option,
    full_option,
    json_option,
    mcp_config_option,
    server_option,
    take_url,
)
from dragoman.cli.render import json, text, tools
from dragoman.cli.render.servers import counted
from dragoman.host import Host
from dragoman.servers.status import ServerStatus


class ToolsGroup(CommandGroup):
    """Treats a first word that is not a sub-command as a pattern: `dragoman tools 'mcp__git*'`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # While a shell completes the first word, the word is not known yet: it may become a command.
        is_asked = bool(args) or not ctx.resilient_parsing
        if is_asked and (not args or (args[0] not in self.table and args[0] not in ctx.help_option_names)):
            args = ["list", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes commands, and the options of `list`, which are accepted here, too."""
        found = super().shell_complete(ctx, incomplete)
        listing = self.get_command(ctx, "list")
        if incomplete.startswith("-") and listing is not None:
            known = {item.value for item in found}
            more = listing.shell_complete(ctx, incomplete)
            found += [item for item in more if item.value not in known]
        return found


@click.group("tools", cls=ToolsGroup, subcommand_metavar="[SERVER|URL] [PATTERN] | COMMAND [ARGS]...")
def command() -> None:
    """The tools of the servers you use: list, search, show, lock.

    Without a command the tools are listed: all, or those that match PATTERN: a part of a name, or a whole
    name with * and ?. `dragoman tools list --help` shows the options.
    """


@command.command(
    "list", short_help="List the tools, or those that match PATTERN. (The word `list` may be omitted.)"
)
@click.argument("words", nargs=-1, metavar="[SERVER|URL] [PATTERN]", shell_complete=complete_server)
@mcp_config_option
@json_option
@server_option
@click.option("--schema", is_flag=True, help="Show the input schemas too.")
@click.option("--cost", is_flag=True, help="Show the approximate number of tokens of each tool's definition.")
@full_option
@frozen_option
def list_tools(
    words: tuple[str, ...],
    as_json: bool,
    server: str | None,
    schema: bool,
    cost: bool,
    full: bool,
    frozen: Path | None,
) -> None:
    """Connects to every server, or only to SERVER, and lists the tools with their parameters.

    PATTERN is a part of a tool's name, or a whole name with * and ?. SERVER is a configured name; a URL, or a
    command given with --stdio, needs no configuration. Servers that fail are reported with the reason, and
    the others are listed.
    """
    words = take_url(words)
    sources, configuration, server = load_with_servers(server)
    if server is None and words and words[0] in configuration.servers:
        server, words = words[0], words[1:]
    if len(words) > 1:
        raise click.UsageError(f"there is no server {words[0]!r}; expected one PATTERN")
    pattern = words[0] if words else None

    async def work(host: Host) -> int:
        views = await wait_for_servers(host, silent=as_json)
        remember_tools(host)
        found = [tool for tool in host.tools(include_denied=True) if pattern is None or fits(tool, pattern)]
        if as_json:
            json.echo(
                {
                    "servers": [json.server(view) for view in views],
                    "tools": [json.tool(tool, cost=cost) for tool in found],
                }
            )
        else:
            _show(views, found, schema=schema, cost=cost, full=full, is_filtered=pattern is not None)
        if pattern is not None and found:
            return exit_codes.OK  # the other servers were not connected
        nothing = exit_codes.NOT_FOUND if pattern is not None else exit_codes.OK
        return list_exit_code(configuration, views, server) or nothing

    sys.exit(run_with_host(sources, work, only=None if server is None else [server], tool_lock=frozen))


def fits(tool: ServerTool, pattern: str) -> bool:
    """Whether the pattern matches the qualified name or the wire name; without a wildcard, a part of it."""
    if not set("*?[") & set(pattern):
        pattern = f"*{pattern}*"
    return any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for name in (tool.name, tool.wire_name))


def _show(
    views: Collection[ServerStatus],
    found: list[ServerTool],
    *,
    schema: bool,
    cost: bool,
    full: bool,
    is_filtered: bool,
) -> None:
    absent = [view for view in views if view.error is not None]
    for view in views:
        if view in absent:
            continue
        offered = [tool for tool in found if tool.server == view.name]
        if is_filtered and view.status == "connected" and not offered:
            continue
        text.show_server(view)
        tools.show_table(offered, schema=schema, cost=cost, full=full)
    if found:
        tools.show_legend(found, cost=cost)
    elif is_filtered:
        click.echo("No tool matches; `dragoman tools search WORDS` also searches descriptions.", err=True)
    show_unconnected(absent)


@command.command("search", short_help="Find tools by what they do.")
@click.argument("words", nargs=-1, required=True)
@mcp_config_option
@json_option
@server_option
@full_option
@click.option(
    "-n", "--limit", type=click.IntRange(1, 100), default=5, show_default=True, help="How many tools."
)
def search(
    words: tuple[str, ...],
    as_json: bool,
    server: str | None,
    limit: int,
    full: bool,
) -> None:
    """Ranks tools as an agent's `tool_search` does: best first; small typing errors are tolerated.

    Servers that fail are reported with the reason, and the others are searched.
    """
    loaded = load_with_servers(server)

    async def work(host: Host) -> int:
        views = await wait_for_servers(host, silent=as_json)
        found = [
            tool
            for tool in Index(host.tools(include_denied=True)).search(" ".join(words), limit=limit)
            if isinstance(tool, ServerTool)
        ]
        if as_json:
            json.echo(
                {
                    "servers": [json.server(view) for view in views],
                    "tools": [json.tool(tool) for tool in found],
                }
            )
        else:
            tools.show_table(found, full=full)
            if not found:
                click.echo("Nothing found; `dragoman tools` lists everything.", err=True)
            show_unconnected(views)
        return (
            exit_codes.OK
            if found
            else list_exit_code(loaded.configuration, views, loaded.server) or exit_codes.NOT_FOUND
        )

    sys.exit(run_with_host(loaded.sources, work, only=loaded.only))


@command.command("show", short_help="Show one tool in full.")
@click.argument("words", nargs=-1, required=True, metavar="[SERVER|URL] TOOL", shell_complete=complete_tool)
@mcp_config_option
@json_option
def show(words: tuple[str, ...], as_json: bool) -> None:
    """Shows TOOL: description, parameters, result, risk, and its size in tokens.

    TOOL is a name as `dragoman tools` lists it, or a server's own name for it: if only one server has it, or
    after the name of its SERVER.
    """
    words = take_url(words)
    if not 1 <= len(words) <= 2:
        raise click.UsageError("expected the name of one tool")
    *servers, tool = words
    loaded = load_with_servers(next(iter(servers), None))
    only = loaded.only or servers_with_tool(tool, loaded.configuration)

    async def work(host: Host) -> int:
        views = await wait_for_servers(host, silent=as_json)
        found = find_tool(host, tool)
        if found is None:
            if only is not None:
                raise_if_not_connected(host)
            show_unconnected(views)
            raise unknown_tool(host, tool)
        if as_json:
            json.echo(
                {**json.tool(found, cost=True), "outputSchema": found.output_schema, "digest": found.digest}
            )
        else:
            tools.show_tool(found)
        return exit_codes.OK

    sys.exit(run_with_host(loaded.sources, work, only=only))


COLOURS = {"+": "green", "-": "red"}


class _LockComparison(Struct, frozen=True):
    """The tools in the lock file compared with the tools that servers offer now."""

    path: Path
    is_first: bool
    tool_count: int
    now: lock.Lock
    changes: tuple[lock.Change, ...]
    forgotten: tuple[str, ...]
    """Servers in the lock file that are no longer configured."""

    @property
    def differs(self) -> bool:
        return self.is_first or bool(self.changes or self.forgotten)


@command.command("lock", short_help="Record every tool's definition in .mcp.lock, and show what has changed.")
@mcp_config_option
@json_option
@server_option
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 if anything differs.")
def lock_tools(as_json: bool, server: str | None, check: bool) -> None:
    """Writes .mcp.lock at the root of the project, and shows what has changed since it was last written.

    Commit the file: with --frozen, `dragoman tools` and `dragoman call` omit every tool that differs from it.
    Entries of servers that cannot be connected are kept; the exit code is then 4.
    """
    loaded = load_with_servers(server)
    path = loaded.sources.project_root / lock.LOCK_FILE
    before = lock.read_lock(path)
    known = None if loaded.server is not None else list(loaded.configuration.servers)

    async def work(host: Host) -> int:
        views = await wait_for_servers(host, silent=as_json)
        read = [view.name for view in views if view.status == "connected"]
        comparison = _compared(path, before, await _offered(host), read, known)
        is_written = bool(read) and not check
        if is_written and (comparison.differs or comparison.now != before):
            lock.write_lock(path, comparison.now)
        if as_json:
            servers = [json.server(view) for view in views]
            document = {"changes": comparison.changes, "forgotten": comparison.forgotten, "servers": servers}
            json.echo({"file": str(path), "isWritten": is_written, **document})
        else:
            _show_changes(comparison)
            click.echo(_summary(comparison, is_written=is_written, check=check), err=True)
            show_unconnected(views)
        differs = exit_codes.FAILED if check and comparison.differs else exit_codes.OK
        return list_exit_code(loaded.configuration, views, loaded.server) or differs

    sys.exit(run_with_host(loaded.sources, work, only=loaded.only))


async def _offered(host: Host) -> list[object]:
    """The tools, prompts and resource templates that the lock file records."""
    prompts, templates = await host.prompts.list(), await host.resources.templates()
    return [*all_tools(host), *prompts, *templates]


def _compared(
    path: Path, before: lock.Lock, offered: list[object], read: list[str], known: list[str] | None
) -> _LockComparison:
    return _LockComparison(
        path=path,
        is_first=not path.exists(),
        tool_count=sum(isinstance(each, Tool) for each in offered),
        now=lock.updated(before, offered, read=read, known=known),
        changes=lock.compare(before, offered, read=read),
        forgotten=tuple(name for name in before.servers if known is not None and name not in known),
    )


def _show_changes(comparison: _LockComparison) -> None:
    """Shows the changes. Shows none for a first lock file, in which everything would be new."""
    for change in () if comparison.is_first else comparison.changes:
        head, *lines = describe(change).split("\n")
        click.echo(click.style(head, bold=True))
        for line in lines:
            click.echo(click.style(line, fg=COLOURS.get(line.lstrip()[:1])))
    for name in comparison.forgotten:
        click.echo(click.style(f"removed: {one_line(name, 100)}, which is not configured here", bold=True))


def _summary(comparison: _LockComparison, *, is_written: bool, check: bool) -> str:
    tools, path = counted(comparison.tool_count, "tool"), one_line(str(comparison.path))
    if not comparison.differs:
        return f"nothing has changed: {tools}, as {path} says"
    if is_written:
        return f"{tools} written to {path}"
    if not check:
        return f"nothing is written to {path}, since no server could be connected"
    if comparison.is_first:
        return f"there is no {path}; `dragoman tools lock` writes it"
    # The changes may be hostile: the message contains no command that accepts them.
    return f"it differs from {path}; review each change above before you accept it"
