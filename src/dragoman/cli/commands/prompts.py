"""`dragoman prompts`: what servers propose to say."""

from __future__ import annotations

import sys

import click

from dragoman.cli.common import chosen_server, complete_server, full_option, named_server
from dragoman.cli.opening import exit_code, opened, problems_of_the_rest, settled, show_absent
from dragoman.cli.options import json_option, mcp_config_option, run_with_host, server_option, yes_option
from dragoman.cli.render import json, offers
from dragoman.cli.terminal_interaction import CommandLineUser
from dragoman.host import Host


@click.command("prompts", short_help="List the prompts of the configured servers.")
@click.argument("words", nargs=-1, metavar="[SERVER|URL]", shell_complete=complete_server)
@mcp_config_option
@json_option
@server_option
@full_option
@click.option("--arguments", is_flag=True, help="Show the description of each argument.")
@yes_option
def command(
    words: tuple[str, ...],
    given: tuple[str, ...],
    strict: bool,
    as_json: bool,
    server: str | None,
    full: bool,
    arguments: bool,
    yes: bool,
) -> None:
    """Lists the prompts of servers, as commands with their arguments: <needed>, [optional].

    `dragoman prompt` gets one. Servers that a rule denies are not shown, unless one is named: then it
    is refused. SERVER is a configured name; a URL, or a command given with --stdio, needs no configuration.
    """
    server = named_server(words, server)
    sources, configuration = opened(given, strict, server)
    server = chosen_server(server)

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
            offers.show_prompts(listed.items, arguments=arguments, full=full)
            show_absent(views, listed.problems)
        return exit_code(configuration, views, server)

    only = None if server is None else [server]
    sys.exit(run_with_host(sources, work, only=only, interaction=CommandLineUser(sources, says_yes=yes)))
