"""`dragoman resources`: lists the resources of servers."""

from __future__ import annotations

import sys

import click

from dragoman.cli.commands.completion import complete_server
from dragoman.cli.common import (
    list_exit_code,
    load_with_servers,
    other_problems,
    run_with_host,
    show_unconnected,
    wait_for_servers,
)
from dragoman.cli.options import (
    chosen_server,
    full_option,
    json_option,
    mcp_config_option,
    named_server,
    server_option,
    yes_option,
)
from dragoman.cli.render import json, resources_prompts
from dragoman.cli.terminal_interaction import CommandLineUser
from dragoman.host import Host


@click.command("resources", short_help="List the resources of the configured servers.")
@click.argument("words", nargs=-1, metavar="[SERVER|URL]", shell_complete=complete_server)
@mcp_config_option
@json_option
@server_option
@full_option
@yes_option
def command(
    words: tuple[str, ...],
    given: tuple[str, ...],
    strict: bool,
    as_json: bool,
    server: str | None,
    full: bool,
    yes: bool,
) -> None:
    """Lists the resources and resource templates of servers.

    `dragoman read` reads one. Servers that a rule denies are not shown, unless one is named: then it is
    refused. SERVER is a configured name; a URL, or a command given with --stdio, needs no configuration.
    """
    server = named_server(words, server)
    sources, configuration = load_with_servers(given, strict, server)
    server = chosen_server(server)

    async def work(host: Host) -> int:
        views = await wait_for_servers(host, quiet=as_json)
        resources, templates = await host.resources.list(server), await host.resources.templates(server)
        problems = (*resources.problems, *templates.problems)
        if as_json:
            json.echo(
                {
                    "servers": [json.server(view) for view in views],
                    "resources": [resources_prompts.resource_json(item) for item in resources],
                    "templates": [resources_prompts.template_json(item) for item in templates],
                    "problems": other_problems(views, problems),
                }
            )
        else:
            resources_prompts.show_resources(resources.items, templates.items, full=full)
            show_unconnected(views, problems)
        return list_exit_code(configuration, views, server)

    only = None if server is None else [server]
    sys.exit(run_with_host(sources, work, only=only, interaction=CommandLineUser(sources, says_yes=yes)))
