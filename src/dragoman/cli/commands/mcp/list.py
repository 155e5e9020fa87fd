"""`dragoman mcp list` and `get`: show servers with their source and status."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from dragoman.cleaning import one_line
from dragoman.cli import exit_codes
from dragoman.cli.commands.completion import complete_server
from dragoman.cli.common import (
    find_server,
    has_unread_files,
    load_and_report,
    run_with_host,
)
from dragoman.cli.options import full_option, json_option, mcp_config_option, sources_of
from dragoman.cli.render import servers
from dragoman.cli.render.document import echo
from dragoman.config.load import Configuration
from dragoman.config.merge import ConfiguredServer
from dragoman.config.scopes import Sources

if TYPE_CHECKING:
    from dragoman.host import Host
    from dragoman.servers.status import ServerStatus


@click.command("list")
@click.option("--no-health", is_flag=True, help="Do not connect to any server.")
@click.option("--check", is_flag=True, help="Fail with exit code 4 if a server could not be connected.")
@click.option("--watch", is_flag=True, help="Stay connected and show every change, until Ctrl-C.")
@mcp_config_option
@json_option
@full_option
def command(
    no_health: bool,
    check: bool,
    watch: bool,
    as_json: bool,
    full: bool,
) -> None:
    """Lists every server with scope, transport and state, and checks each by connecting to it.

    Servers that need approval, are disabled, or are not allowed by policy are not started: they are listed
    with the reason.
    """
    if watch and no_health:
        raise click.UsageError("--watch cannot be combined with --no-health")
    if check and (watch or no_health):
        raise click.UsageError("--check cannot be combined with --watch or --no-health")
    sources = sources_of()
    configuration = load_and_report(sources, everything=True)
    if watch:
        _watch(sources, as_json)
        return
    wanted = [name for name, server in configuration.servers.items() if server.eligibility == "ready"]
    views: Mapping[str, ServerStatus] = {}
    if not no_health and (wanted or configuration.connectors):
        known = configuration.problems
        views, configuration = run_with_host(sources, _check)
        for problem in configuration.problems:
            if problem not in known:
                servers.show_problem(problem)
    if as_json:
        echo(_document(configuration, views))
    else:
        _show(configuration, views, full=full)
        servers.show_warnings(configuration.servers.values())
    if configuration.policy.broken or has_unread_files(configuration):
        sys.exit(exit_codes.CONFIG)
    if check:
        sys.exit(_check_exit_code(configuration, views))


def _check_exit_code(configuration: Configuration, views: Mapping[str, ServerStatus]) -> int:
    if any(server.eligibility == "broken" for server in configuration.servers.values()):
        return exit_codes.CONFIG
    failed = any(view.status in ("failed", "needs-auth") for view in views.values())
    return exit_codes.NOT_CONNECTED if failed else exit_codes.OK


def _watch(sources: Sources, as_json: bool) -> None:
    from dragoman.cli.render.live_servers import watch

    # Ctrl-C is the normal end of --watch, not a failure.
    with contextlib.suppress(KeyboardInterrupt):
        run_with_host(sources, lambda host: watch(host, as_json=as_json), watch=True)


async def _check(host: Host) -> tuple[Mapping[str, ServerStatus], Configuration]:
    from dragoman.cli.render.progress import ConnectProgress

    with ConnectProgress(host):
        return await host.ready(), host.configuration


def _show(configuration: Configuration, views: Mapping[str, ServerStatus], *, full: bool) -> None:
    listed = sorted(configuration.servers.values(), key=lambda server: server.name)
    if not listed:
        click.echo("No servers are configured. Add one with `dragoman mcp add`.")
    servers.show_list(listed, views, full=full)
    servers.show_reasons(listed, views)
    for dropped in configuration.dropped:
        servers.show_dropped(dropped)
    if configuration.unconfirmed_variables:
        click.echo(
            "The administrator's file sets variables that you have not confirmed: dragoman mcp approve"
        )


def _document(configuration: Configuration, views: Mapping[str, ServerStatus]) -> dict[str, object]:
    return {
        "servers": [
            servers.as_json(server, views.get(name)) for name, server in configuration.servers.items()
        ],
        "dropped": [servers.dropped_json(dropped) for dropped in configuration.dropped],
        "problems": configuration.problems,
    }


@click.command("get")
@click.argument("name", shell_complete=complete_server)
@click.option("--no-health", is_flag=True, help="Do not connect to it.")
@mcp_config_option
@json_option
def get(name: str, no_health: bool, as_json: bool) -> None:
    """Shows the server NAME: its source, its entry as written (secrets masked), and its status."""
    sources = sources_of()
    configuration = load_and_report(sources)
    server = find_server(configuration, name)

    async def check(host: Host) -> ServerStatus:
        return (await host.ready())[name]

    is_checked = not no_health and server.eligibility == "ready"
    view = run_with_host(sources, check, only=[name]) if is_checked else None
    if as_json:
        echo(servers.as_json(server, view))
    else:
        _show_one(server, view)
        servers.show_warnings([server])


def _show_one(server: ConfiguredServer, view: ServerStatus | None) -> None:
    servers.show_list([server], {server.name: view} if view else {})
    click.echo(f"  file: {one_line(server.source)}")
    for field, value in servers.masked(server).items():
        click.echo(f"  {one_line(field)}: {servers.inline(value)}")
    for other in server.replaced:
        click.echo(f"  replaces the entry from {one_line(other.origin)}")
    servers.show_reasons([server], {server.name: view} if view else {})
