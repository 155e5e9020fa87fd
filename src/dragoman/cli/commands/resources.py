"""`dragoman resources`: what can be read."""

from __future__ import annotations

import sys

import click

from dragoman.cli import exit_codes
from dragoman.cli.opening import opened
from dragoman.cli.options import json_option, mcp_config_option, run_with_host, server_option
from dragoman.cli.render import json, offers
from dragoman.cli.render.servers import show_problem
from dragoman.cli.render.waiting import Waiting
from dragoman.host import Host


@click.command("resources", short_help="List the resources of the configured servers.")
@mcp_config_option
@json_option
@server_option
def command(given: tuple[str, ...], strict: bool, as_json: bool, server: str | None) -> None:
    """Lists what servers offer to be read: resources, and templates with gaps to fill.

    `dragoman read` reads one. Exit code 4 if a server could not be asked; the others are listed all the same.
    """
    sources, _ = opened(given, strict, server)

    async def work(host: Host) -> int:
        with Waiting(host):
            await host.ready()
            resources, templates = await host.resources.list(), await host.resources.templates()
        problems = dict.fromkeys((*resources.problems, *templates.problems))
        if as_json:
            json.echo(
                {"resources": resources.items, "templates": templates.items, "problems": list(problems)}
            )
        else:
            offers.show_resources(resources.items, templates.items)
            for problem in problems:
                show_problem(problem)
        return exit_codes.NOT_CONNECTED if problems else exit_codes.OK

    sys.exit(run_with_host(sources, work, only=None if server is None else [server]))
