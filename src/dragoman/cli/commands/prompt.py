"""`dragoman prompt`: one prompt, filled in."""

from __future__ import annotations

import sys

import click

from dragoman.catalog.prompts import arguments_of
from dragoman.cli import exit_codes
from dragoman.cli.commands.call import servers_of
from dragoman.cli.opening import opened
from dragoman.cli.options import json_option, mcp_config_option, pairs, run_with_host
from dragoman.cli.render import json, offers
from dragoman.cli.render.servers import show_problem
from dragoman.cli.render.waiting import Waiting
from dragoman.host import Host


@click.command("prompt", short_help="Fill in one prompt of a server and print it.")
@click.argument("name")
@click.argument("arguments", nargs=-1)
@mcp_config_option
@json_option
@click.option(
    "--complete", metavar="ARGUMENT=BEGINNING", help="Print what an argument may be, and nothing else."
)
def command(
    name: str,
    arguments: tuple[str, ...],
    given: tuple[str, ...],
    strict: bool,
    as_json: bool,
    complete: str | None,
) -> None:
    """Prints the messages that NAME (as `dragoman prompts` lists it) comes to.

    ARGUMENTS fill the prompt's own list in its order, or are given as name=value.
    """
    name = name.removeprefix("/")
    sources, configuration = opened(given, strict)
    only = servers_of(name, configuration)

    async def work(host: Host) -> int:
        with Waiting(host):
            await host.ready()
        prompt = await host.prompts.find(name)
        if complete is not None:
            ((argument, beginning),) = pairs((complete,)).items()
            found = await host.prompts.complete(name, argument, beginning, given=pairs(arguments))
            offers.show_completion(found, as_json=as_json)
            return exit_codes.OK
        result = await host.prompts.get(name, arguments_of(prompt, arguments))
        if as_json:
            json.echo(result)
        else:
            offers.show_prompt(result)
            for problem in result.problems:
                show_problem(problem)
        return exit_codes.OK

    sys.exit(run_with_host(sources, work, only=only))
