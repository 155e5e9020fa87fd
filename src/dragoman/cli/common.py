"""Functions of several commands: loading the configuration, running a host, finding servers and tools by the
names that people type, and reporting servers that are not connected.

The host is imported only by commands that connect.
"""

from __future__ import annotations

import contextlib
import difflib
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Generator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, Unpack

import click

from dragoman.catalog.naming import LIMIT, prefix
from dragoman.cleaning import one_line
from dragoman.cli import exit_codes
from dragoman.cli.options import added_folders, chosen_server, named_server, sources_of
from dragoman.cli.render.servers import show_problem, show_problems
from dragoman.config.load import Configuration, load
from dragoman.config.merge import EXCLUSIVE, ConfiguredServer
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError, DragomanError, NotConnected, NotFound, UnknownTool
from dragoman.names import RESERVED, shell_quoted

if TYPE_CHECKING:
    import asyncio

    from dragoman.catalog.tools import ServerTool
    from dragoman.cli.approval_questions import ServersToStart
    from dragoman.events import Event
    from dragoman.host import Host, HostOptions
    from dragoman.servers.status import ServerStatus


T = TypeVar("T")


def load_and_report(sources: Sources | None = None, *, everything: bool = False) -> Configuration:
    """Loads the configuration. Reports a policy that cannot be read; `everything`: also other problems."""
    configuration = load(sources or Sources.here())
    if everything:
        show_problems(configuration)
    elif configuration.policy.broken:
        show_problem(configuration.problems[0])
    return configuration


class Loaded(NamedTuple):
    """The configuration of a command that starts servers."""

    sources: Sources
    configuration: Configuration
    server: str | None
    """The only server that the command uses; None: all servers."""

    @property
    def only(self) -> list[str] | None:
        return None if self.server is None else [self.server]


def load_with_servers(server: str | None = None, servers_to_start: ServersToStart | None = None) -> Loaded:
    """Loads the configuration, asks about servers that need approval, and reports problems in files.

    `server`: a server that must exist. `servers_to_start`: see `load_with_approvals`. A server given as a URL
    or with --stdio is the only one.
    """
    from dragoman.cli.approval_questions import load_with_approvals

    sources = sources_of()
    configuration = load_with_approvals(sources, servers_to_start or (lambda _: [server] if server else None))
    show_problems(configuration)
    check_readable(configuration)
    loaded = Loaded(sources, configuration, chosen_server(server))
    if configuration.connectors is not None:  # connectors may add more servers
        return loaded
    if not configuration.servers:
        raise no_servers(configuration)
    if loaded.server is not None:
        find_server(configuration, loaded.server)
    return loaded


def check_readable(configuration: Configuration) -> None:
    """Raises `ConfigError` if nothing may be started or called because a file cannot be read."""
    if configuration.policy.broken is not None:
        raise ConfigError(
            f"nothing is started or called: {configuration.policy.broken}",
            hint="`dragoman mcp list`, `config explain` and `permissions list` still work.",
        )


def no_servers(configuration: Configuration) -> ConfigError:
    if configuration.is_exclusive:
        return ConfigError("no servers are configured", hint=f"{EXCLUSIVE[0].upper()}{EXCLUSIVE[1:]}.")
    context = click.get_current_context(silent=True)
    takes_command = context is None or any(each.name == "stdio" for each in context.command.params)
    given = " give a URL or --stdio COMMAND," if takes_command else ""
    return ConfigError(
        "no servers are configured",
        hint=f"Add one with `dragoman mcp add`,{given} or try --mcp-config demo.",
    )


def find_server(configuration: Configuration, name: str) -> ConfiguredServer:
    """The server of this name. Raises `ConfigError` if it is not in effect, and `NotFound`."""
    if name in configuration.servers:
        return configuration.servers[name]
    for dropped in configuration.dropped:
        if dropped.candidate.name == name:
            raise ConfigError(
                f"server {name!r} of {dropped.candidate.origin} is not in effect: {dropped.text}",
                hint="`dragoman config explain` shows everything that was dropped.",
            )
    from dragoman.catalog.overview import enumerated

    near = difflib.get_close_matches(name, configuration.servers, 3)
    known = enumerated(near or list(configuration.servers))
    hint = "`dragoman mcp list` shows the configured servers."
    if known:
        hint = f"Did you mean {known}?" if near else f"There are: {known}."
    raise NotFound(f"there is no server {name!r}", hint=hint)


def run_with_host(
    sources: Sources | Mapping[str, Any],
    work: Callable[[Host], Awaitable[T]],
    *,
    shows_reports: bool = True,
    at_end: Callable[[], Awaitable[object]] | None = None,
    **options: Unpack[HostOptions],
) -> T:
    """Runs the work of one command in an open host. SIGTERM and SIGHUP, if not ignored, close the host first.

    `options`: those of `Host`. Without an `interaction` the command makes no calls; the permission mode is
    `default` unless another one is given. `shows_reports`: whether reports of hooks, and failures to write
    the audit log or rules, are shown on stderr. `at_end`: called and awaited after the host was closed.
    """
    import asyncio

    from dragoman.events import ConfigurationChanged, HookReported
    from dragoman.host import Host

    reported = (ConfigurationChanged, HookReported)
    options.setdefault("permission_mode", "default")
    options["roots"] = added_folders()

    async def main() -> T:
        task = asyncio.current_task()
        if task is not None:
            _cancel_on_signals(task)
        host = Host(sources, **options)
        is_shown = shows_reports and (options.get("interaction") is not None or options.get("audit"))
        reporting = asyncio.create_task(_show_reports(host.events(*reported))) if is_shown else None
        try:
            async with host:
                for problem in host.problems:
                    if problem not in host.configuration.problems:  # those were shown earlier
                        show_problem(problem)
                return await work(host)
        except asyncio.CancelledError:  # possibly while the host is closed, which may take long
            if reporting is not None:
                reporting.cancel()
            raise
        finally:
            if reporting is not None:
                await asyncio.wait([reporting])  # the last reports are published while the host is closed
            if at_end is not None:
                await at_end()

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@contextlib.contextmanager
def cancelled_by_ctrl_c(task: asyncio.Task[Any]) -> Generator[None]:
    """While this context is open, Ctrl-C cancels the task and does nothing else."""
    loop = task.get_loop()
    with contextlib.suppress(NotImplementedError):  # event loops without signal handlers
        loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        yield
    finally:
        with contextlib.suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)


def _cancel_on_signals(task: asyncio.Task[Any]) -> None:
    """Cancels the task on SIGTERM and SIGHUP, except one that was ignored when the program was started, as
    `nohup` does. Where event loops have no signal handlers (Windows), the program ends at once instead;
    Ctrl-C works everywhere."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            with contextlib.suppress(NotImplementedError):
                task.get_loop().add_signal_handler(number, task.cancel)


async def _show_reports(events: AsyncIterator[Event]) -> None:
    """Shows reports of hooks, and failures that do not end the work, until the host is closed."""
    from dragoman.cli.render.progress import TerminalStatus
    from dragoman.events import ConfigurationChanged, HookReported

    async for event in events:
        reports: tuple[str, ...] = ()
        if isinstance(event, HookReported):
            reports = (f"hook {event.hook} ({event.event}): {event.text}",)
        elif isinstance(event, ConfigurationChanged):
            reports = event.problems
        if reports:
            TerminalStatus.hide_current()
        for report in reports:
            show_problem(report)


async def wait_for_servers(host: Host, *, silent: bool = False) -> Collection[ServerStatus]:
    """Waits until each server is connected or has failed. `silent`: shows no progress."""
    from dragoman.cli.render.progress import ConnectProgress

    with contextlib.nullcontext() if silent else ConnectProgress(host):
        return (await host.ready()).values()


def show_unconnected(views: Collection[ServerStatus], problems: Collection[str] = ()) -> None:
    """Shows why servers are missing from a list, and other problems."""
    from dragoman.cli.render import text

    for view in views:
        if view.error is not None:
            text.show_error(view.error)
        elif view.status != "connected":
            text.show_server(view, err=True)
    for problem in other_problems(views, problems):
        show_problem(problem)


def other_problems(views: Collection[ServerStatus], problems: Collection[str]) -> list[str]:
    """The problems, without those that only repeat that a server is not connected."""
    absent = tuple(f"{view.name}: " for view in views if view.status != "connected")
    return [problem for problem in dict.fromkeys(problems) if not problem.startswith(absent)]


class OfferedItems(NamedTuple):
    """The resources or prompts that a command lists."""

    document: Mapping[str, Any]
    """The document that `--json` prints."""
    problems: Collection[str]
    show: Callable[[], None]
    """Prints the list as text."""


def show_listing(
    words: tuple[str, ...],
    server: str | None,
    read: Callable[[Host, str | None], Awaitable[OfferedItems]],
    *,
    as_json: bool,
    yes: bool,
) -> NoReturn:
    """Prints the resources or prompts of servers, and exits. `words` and `server`: from the command line."""
    from dragoman.cli.render import json
    from dragoman.cli.terminal_interaction import CommandLineUser

    loaded = load_with_servers(named_server(words, server))

    async def work(host: Host) -> int:
        views = await wait_for_servers(host, silent=as_json)
        offered = await read(host, loaded.server)
        if as_json:
            servers = [json.server(view) for view in views]
            problems = other_problems(views, offered.problems)
            json.echo({"servers": servers, **offered.document, "problems": problems})
        else:
            offered.show()
            show_unconnected(views, offered.problems)
        return list_exit_code(loaded.configuration, views, loaded.server)

    user = CommandLineUser(loaded.sources, assumes_yes=yes)
    sys.exit(run_with_host(loaded.sources, work, only=loaded.only, interaction=user))


def list_exit_code(
    configuration: Configuration, views: Collection[ServerStatus], server: str | None = None
) -> int:
    """The exit code of a command that lists. A server that needs approval or is disabled is a failure only if
    it is the requested `server`; a file that cannot be read is a failure only without such a server."""
    if configuration.policy.broken or (server is None and has_unread_files(configuration)):
        return exit_codes.CONFIG
    if any(isinstance(view.error, ConfigError) for view in views if _is_failure(view)):
        return exit_codes.CONFIG
    absent = [view for view in views if view.status != "connected"]
    failed = any(view.status in ("failed", "needs-auth") or view.name == server for view in absent)
    return exit_codes.NOT_CONNECTED if failed else exit_codes.OK


def _is_failure(view: ServerStatus) -> bool:
    return view.status == "failed" or view.scope == "dynamic"


def report_not_found(error: DragomanError, *, as_json: bool) -> int:
    """Reports that there is nothing of that name. Returns the exit code."""
    from dragoman.cli.render.text import report_error

    report_error(error, as_json=as_json)
    return exit_codes.NOT_FOUND


def has_unread_files(configuration: Configuration) -> bool:
    """Whether a file cannot be read, without --ignore-broken-settings."""
    return bool(configuration.reading.failed) and not configuration.sources.ignore_broken_settings


# Finding tools by the names that people type.


def all_tools(host: Host) -> list[ServerTool]:
    """Every tool, including tools for apps and denied tools, so that people see why a call fails."""
    return host.tools(include_app_tools=True, include_denied=True)


def servers_with_tool(tool: str, configuration: Configuration) -> list[str] | None:
    """The servers that can have the tool, by its qualified name; None for a wire name."""
    fitting = [name for name in configuration.servers if tool.startswith(prefix(name))]
    if not fitting and tool.startswith(RESERVED) and len(tool) < LIMIT and configuration.connectors is None:
        server = tool.removeprefix(RESERVED).partition("__")[0]
        near = difflib.get_close_matches(server, configuration.servers, 1)
        raise UnknownTool(tool, near=tuple(tool.replace(server, name, 1) for name in near))
    return fitting or None


def find_tool(host: Host, name: str, only: Collection[str] | None = None) -> ServerTool | None:
    """The tool with this qualified name, or the only tool with this wire name. `UsageError` if there are
    several. `only`: the servers to search."""
    known = [tool for tool in all_tools(host) if only is None or tool.server in only]
    found = [tool for tool in known if tool.name == name]
    found = found or [tool for tool in known if tool.wire_name == name]
    if len(found) > 1:
        names = ", ".join(tool.name for tool in found)
        raise click.UsageError(f"several servers have a tool {name!r}; give its full name: {names}")
    return found[0] if found else None


def unknown_tool(host: Host, name: str) -> UnknownTool:
    """The error for an unknown tool, with similar names."""
    return UnknownTool(name, near=_near_tools(host, name))


def unknown_server_and_tool(host: Host, first: str, second: str) -> UnknownTool:
    """The error for two words of which the first names neither a server nor a tool."""
    same = tuple(tool.name for tool in all_tools(host) if tool.wire_name == second)[:3]
    error = UnknownTool(first, near=same or _near_tools(host, second))
    error.hint = f"There is also no server of this name, and a call takes one tool. {error.hint}"
    return error


def _near_tools(host: Host, name: str) -> tuple[str, ...]:
    names = {str(spelled): tool.name for tool in all_tools(host) for spelled in (tool.wire_name, tool.name)}
    near = difflib.get_close_matches(name, names, n=3)
    return tuple(dict.fromkeys(names[each] for each in near))


def raise_if_not_connected(host: Host) -> None:
    """Raises the error of a server that is not connected: a tool may be missing for that reason."""
    for view in host.servers.values():
        if view.error is not None:
            raise view.error
        if view.status in ("pending", "disabled"):
            enable = f"`dragoman mcp enable {one_line(shell_quoted(view.name))}` enables it."
            hint = "`dragoman mcp approve` shows it and asks." if view.status == "pending" else enable
            raise NotConnected(view.name, view.status, view.reason, hint=hint)
