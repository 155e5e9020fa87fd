"""`dragoman prompts`: lists the prompts of servers."""

from __future__ import annotations

import click

from dragoman.cli.common import OfferedItems, show_listing
from dragoman.cli.options import list_options
from dragoman.cli.render.resources_prompts import prompt_json, show_prompts
from dragoman.host import Host


@click.command("prompts")
@list_options
@click.option("--arguments", is_flag=True, help="Show the description of each argument.")
def command(
    words: tuple[str, ...], as_json: bool, server: str | None, full: bool, arguments: bool, yes: bool
) -> None:
    """Lists the prompts of servers, as commands with their arguments: <needed>, [optional].

    `dragoman prompt` gets one. Servers that a rule denies are not shown, unless one is named: then it
    is refused. SERVER is a configured name; a URL, or a command given with --stdio, needs no configuration.
    """

    async def read(host: Host, server: str | None) -> OfferedItems:
        prompts = await host.prompts.list(server)
        return OfferedItems(
            {"prompts": [*map(prompt_json, prompts)]},
            prompts.problems,
            lambda: show_prompts(prompts.items, arguments=arguments, full=full),
        )

    show_listing(words, server, read, as_json=as_json, yes=yes)
