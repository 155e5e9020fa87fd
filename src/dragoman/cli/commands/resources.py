"""`dragoman resources`: what can be read."""

from __future__ import annotations

import sys

import click

from dragoman.cli.asking import CommandLineUser
from dragoman.cli.opening import exit_code, opened, problems_of_the_rest, settled, show_absent
from dragoman.cli.options import json_option, mcp_config_option, run_with_host, server_option, yes_option
from dragoman.cli.render import json, offers
from dragoman.host import Host


@click.command("resources", short_help="List the resources of the configured servers.")
@mcp_config_option
@json_option
@server_option
@yes_option
def command(given: tuple[str, ...], strict: bool, as_json: bool, server: str | None, yes: bool) -> None:
    """Lists what servers offer to be read: resources, and templates with gaps to fill.

    `dragoman read` reads one. Without --server, servers that a rule denies are not shown. Exit code 4 if a
    server could not be connected (the others are listed all the same), 6 if the one named is denied.
    """
    sources, configuration = opened(given, strict, server)

    async def work(host: Host) -> int:
        views = await settled(host, quiet=as_json)
        resources, templates = await host.resources.list(server), await host.resources.templates(server)
        problems = (*resources.problems, *templates.problems)
        if as_json:
            json.echo(
                {
                    "servers": [json.server(view) for view in views],
                    "resources": [offers.resource_json(item) for item in resources],
                    "templates": [offers.template_json(item) for item in templates],
                    "problems": problems_of_the_rest(views, problems),
                }
            )
        else:
            offers.show_resources(resources.items, templates.items)
            show_absent(views, problems)
        return exit_code(configuration, views)

    only = None if server is None else [server]
    sys.exit(run_with_host(sources, work, only=only, interaction=CommandLineUser(sources, says_yes=yes)))
