"""`dragoman prompts`: what servers propose to say."""

from __future__ import annotations

import sys

import click

from dragoman.cli.asking import CommandLineUser
from dragoman.cli.opening import exit_code, opened, problems_of_the_rest, settled, show_absent
from dragoman.cli.options import json_option, mcp_config_option, run_with_host, server_option, yes_option
from dragoman.cli.render import json, offers
from dragoman.host import Host


@click.command("prompts", short_help="List the prompts of the configured servers.")
@mcp_config_option
@json_option
@server_option
@click.option("--arguments", is_flag=True, help="Show what each argument is for.")
@yes_option
def command(
    given: tuple[str, ...], strict: bool, as_json: bool, server: str | None, arguments: bool, yes: bool
) -> None:
    """Lists the prompts of servers, as commands with their arguments: <needed>, [optional].

    `dragoman prompt` fills one in. Without --server, servers that a rule denies are not shown. Exit code 4
    if a server could not be connected (the others are listed all the same), 6 if the one named is denied.
    """
    sources, configuration = opened(given, strict, server)

    async def work(host: Host) -> int:
        views = await settled(host, quiet=as_json)
        listed = await host.prompts.list(server)
        if as_json:
            json.echo(
                {
                    "servers": [json.server(view) for view in views],
                    "prompts": [offers.prompt_json(item) for item in listed],
                    "problems": problems_of_the_rest(views, listed.problems),
                }
            )
        else:
            offers.show_prompts(listed.items, arguments=arguments)
            show_absent(views, listed.problems)
        return exit_code(configuration, views)

    only = None if server is None else [server]
    sys.exit(run_with_host(sources, work, only=only, interaction=CommandLineUser(sources, says_yes=yes)))
