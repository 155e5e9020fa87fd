"""`dragoman config plan`: shows what has changed since a host was last started in this folder."""

from __future__ import annotations

import click

from dragoman.cleaning import one_line
from dragoman.cli.common import load_and_report
from dragoman.cli.options import json_option
from dragoman.cli.render import servers
from dragoman.cli.render.document import echo
from dragoman.config.load import Configuration
from dragoman.config.plan import Plan, compare, last_snapshots, snapshots_of

_SIGNS = (
    ("added", "+", "green"),
    ("changed", "~", "yellow"),
    ("removed", "-", "red"),
    ("unchanged", "=", None),
)


@click.command("plan")
@json_option
def command(as_json: bool) -> None:
    """Compares the configuration with the one a host last used in this folder: servers that would be added,
    removed or changed, and reasons why a server would not be started. Starts no server.
    """
    configuration = load_and_report(everything=True)
    plan = compare(last_snapshots(configuration.sources), snapshots_of(configuration))
    if as_json:
        echo(
            {
                **{kind: getattr(plan, kind) for kind, _, _ in _SIGNS},
                "servers": [servers.as_json(server) for server in configuration.servers.values()],
                "problems": configuration.problems,
            }
        )
        return
    _show(plan, configuration)


def _show(plan: Plan, configuration: Configuration) -> None:
    for kind, sign, colour in _SIGNS:
        for name in getattr(plan, kind):
            server = configuration.servers.get(name)
            about = f"{server.eligibility}: {server.reason}" if server and server.reason else ""
            about = (
                "; ".join(filter(None, [about or server.eligibility, servers.target_of(server)]))
                if server
                else ""
            )
            click.echo(
                f"{click.style(f'{sign} {one_line(name, 60)}', fg=colour)}  {one_line(about, 300)}".rstrip()
            )
    if plan.is_empty:
        click.echo("Nothing has changed.")
