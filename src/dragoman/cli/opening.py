"""What the commands that connect share: how they start, and how they report servers that fail.

Finds the configuration and checks that it names a server, waits until each server is connected or has failed,
shows failed servers after what the others offer, and computes the exit code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import TYPE_CHECKING

from dragoman.cli import exit_codes
from dragoman.cli.approving import Started, load_asking
from dragoman.cli.common import chosen_server, has_unread_files
from dragoman.cli.finding import find
from dragoman.cli.options import check_readable, no_servers, sources_of
from dragoman.cli.render.servers import show_problem, show_problems
from dragoman.config.load import Configuration
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError, DragomanError

if TYPE_CHECKING:
    from dragoman.host import Host
    from dragoman.servers.status import ServerStatus


def opened(
    given: tuple[str, ...], strict: bool, server: str | None = None, started: Started | None = None
) -> tuple[Sources, Configuration]:
    """Asks about servers that need approval and reports problems in files. `server`: one that must exist.

    With a server given as a URL or with --stdio, that one is all there is. `started`: see `load_asking`.
    """
    sources = sources_of(given, strict)
    configuration = load_asking(sources, started or (lambda _: [server] if server else None))
    show_problems(configuration)
    check_readable(configuration)
    if configuration.connectors is not None:  # more servers may come to be known
        return sources, configuration
    if not configuration.servers:
        raise no_servers(configuration)
    wanted = chosen_server(server)
    if wanted is not None:
        find(configuration, wanted)
    return sources, configuration


async def settled(host: Host, *, quiet: bool = False) -> Collection[ServerStatus]:
    """The servers, once each of them is connected or has failed. `quiet`: a program reads what follows."""
    from dragoman.cli.render.progress import Waiting

    with contextlib.nullcontext() if quiet else Waiting(host):
        return (await host.ready()).values()


def show_absent(views: Collection[ServerStatus], problems: Collection[str] = ()) -> None:
    """Why servers are missing from what is listed, and what else is not as it should be."""
    from dragoman.cli.render import text

    for view in views:
        if view.error is not None:
            text.show_error(view.error)
        elif view.status != "connected":
            text.show_server(view, err=True)
    for problem in problems_of_the_rest(views, problems):
        show_problem(problem)


def problems_of_the_rest(views: Collection[ServerStatus], problems: Collection[str]) -> list[str]:
    """Without those that only say once more that a server is not there."""
    absent = tuple(f"{view.name}: " for view in views if view.status != "connected")
    return [problem for problem in dict.fromkeys(problems) if not problem.startswith(absent)]


def exit_code(
    configuration: Configuration, views: Collection[ServerStatus], server: str | None = None
) -> int:
    """Of a list. A server that needs approval or is disabled is a failure only if it is the `server` asked
    for; a file that cannot be read is one unless there is such a server."""
    if configuration.policy.broken or (server is None and has_unread_files(configuration)):
        return exit_codes.CONFIG
    if any(isinstance(view.error, ConfigError) for view in views if _is_our_fault(view)):
        return exit_codes.CONFIG
    absent = [view for view in views if view.status != "connected"]
    failed = any(view.status in ("failed", "needs-auth") or view.name == server for view in absent)
    return exit_codes.NOT_CONNECTED if failed else exit_codes.OK


def _is_our_fault(view: ServerStatus) -> bool:
    return view.status == "failed" or view.scope == "dynamic"


def not_there(error: DragomanError, *, as_json: bool) -> int:
    """Tells that there is nothing of that name. The exit code is the same as for a tool."""
    from dragoman.cli.render import json, text

    if as_json:
        json.echo({"error": json.error(error)})
    else:
        text.show_error(error)
    return exit_codes.NOT_FOUND
