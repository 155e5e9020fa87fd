"""`dragoman resources`: lists the resources of servers."""

from __future__ import annotations

import click

from dragoman.cli.common import OfferedItems, show_listing
from dragoman.cli.options import list_options
from dragoman.cli.render.resources_prompts import resource_json, show_resources, template_json
from dragoman.host import Host


@click.command("resources")
@list_options
def command(words: tuple[str, ...], as_json: bool, server: str | None, full: bool, yes: bool) -> None:
    """Lists the resources and resource templates of servers.

    `dragoman read` reads one. Servers that a rule denies are not shown, unless one is named: then it is
    refused. SERVER is a configured name; a URL, or a command given with --stdio, needs no configuration.
    """

    async def read(host: Host, server: str | None) -> OfferedItems:
        resources, templates = await host.resources.list(server), await host.resources.templates(server)
        return OfferedItems(
            {"resources": [*map(resource_json, resources)], "templates": [*map(template_json, templates)]},
            (*resources.problems, *templates.problems),
            lambda: show_resources(resources.items, templates.items, full=full),
        )

    show_listing(words, server, read, as_json=as_json, yes=yes)
