"""`dragoman prompt` and `prompts`: get one prompt with its arguments, and list the prompts of servers."""

from __future__ import annotations

import sys

import click

from dragoman.catalog.commands import arguments_of
from dragoman.catalog.naming import prefix
from dragoman.catalog.prompts import Prompt
from dragoman.cli import exit_codes
from dragoman.cli.common import (
    OfferedItems,
    load_with_servers,
    raise_if_not_connected,
    report_not_found,
    run_with_host,
    show_listing,
    show_unconnected,
    wait_for_servers,
)
from dragoman.cli.options import (
    adhoc_server,
    json_option,
    list_options,
    mcp_config_option,
    one_pair,
    pairs,
    take_url,
    yes_option,
)
from dragoman.cli.render import json, resources_prompts
from dragoman.cli.render.resources_prompts import prompt_json, show_prompts
from dragoman.cli.render.servers import show_problem
from dragoman.cli.terminal_interaction import CommandLineUser
from dragoman.config.load import Configuration
from dragoman.errors import CallError, PermissionRefused
from dragoman.host import Host


@click.command("prompt")
@click.argument("words", nargs=-1, required=True, metavar="[URL] NAME [ARGUMENTS]...")
@mcp_config_option
@json_option
@yes_option
@click.option("--complete", metavar="ARGUMENT=BEGINNING", help="Print completions for one argument and exit.")
def command(
    words: tuple[str, ...],
    as_json: bool,
    yes: bool,
    complete: str | None,
) -> None:
    """Prints the messages of the prompt NAME (as `dragoman prompts` lists it).

    ARGUMENTS are given in the order of the prompt's arguments, or as name=value. Running this command allows
    the request; a question is asked only if an ask rule applies. A server given as URL, or with --stdio,
    needs no configuration.
    """
    words = take_url(words)
    if not words:
        raise click.UsageError("give the name of a prompt after the URL; `dragoman prompts URL` lists them")
    name, arguments = words[0].removeprefix("/"), words[1:]
    typed = None if complete is None else (*one_pair(complete), pairs(arguments))
    sources, configuration, _ = load_with_servers()

    async def work(host: Host) -> int:
        await wait_for_servers(host, silent=as_json)
        try:
            prompt = await _find(host, name)
        except PermissionRefused:
            raise
        except CallError as error:
            if only is not None:
                raise_if_not_connected(host)
            show_unconnected(host.servers.values())
            return report_not_found(error, as_json=as_json)
        if typed is not None:
            argument, beginning, others = typed
            found = await host.prompts.complete(prompt.name, argument, beginning, given=others)
            resources_prompts.show_completion(found, as_json=as_json)
        else:
            await _print(host, prompt, arguments, as_json=as_json)
        return exit_codes.OK

    adhoc = adhoc_server()
    only = [adhoc.name] if adhoc is not None else _servers_of(name, configuration)
    user = CommandLineUser(sources, assumes_yes=yes)
    sys.exit(run_with_host(sources, work, only=only, interaction=user))


def _servers_of(name: str, configuration: Configuration) -> list[str] | None:
    """The servers whose prompts can have this name; None (all servers) if it begins with no server's
    prefix."""
    return [server for server in configuration.servers if name.startswith(prefix(server))] or None


async def _find(host: Host, name: str) -> Prompt:
    """Finds the prompt by its listed name, or by its wire name if only one server has it."""
    listed = (await host.prompts.list()).items
    named = [prompt for prompt in listed if prompt.wire_name == name]
    return named[0] if len(named) == 1 else await host.prompts.find(name)


async def _print(host: Host, prompt: Prompt, words: tuple[str, ...], *, as_json: bool) -> None:
    result = await host.prompts.get(prompt.name, arguments_of(prompt, words))
    if as_json:
        json.echo(resources_prompts.prompt_result_json(result))
        return
    resources_prompts.show_prompt(result)
    for problem in result.problems:
        show_problem(problem)


@click.command("prompts")
@list_options
@click.option("--arguments", is_flag=True, help="Show the description of each argument.")
def prompts(
    words: tuple[str, ...], as_json: bool, server: str | None, full: bool, arguments: bool, yes: bool
) -> None:
    """Lists the prompts of servers, as commands with their arguments: <needed>, [optional].

    `dragoman prompt` gets one. Servers that a rule denies are not shown; if one of them is named, the request
    is refused. SERVER is a configured name; a URL, or a command given with --stdio, needs no configuration.
    """

    async def read(host: Host, server: str | None) -> OfferedItems:
        listed = await host.prompts.list(server)
        return OfferedItems(
            {"prompts": [*map(prompt_json, listed)]},
            listed.problems,
            lambda: show_prompts(listed.items, arguments=arguments, full=full),
        )

    show_listing(words, server, read, as_json=as_json, yes=yes)
