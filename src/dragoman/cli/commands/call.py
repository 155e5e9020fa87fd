"""`dragoman call`: calls one tool and shows its result."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dragoman.calls.outcome import CallOutcome
from dragoman.cleaning import one_line
from dragoman.cli import exit_codes
from dragoman.cli.commands.completion import complete_tool, remember_tools
from dragoman.cli.common import (
    find_tool,
    load_with_servers,
    raise_if_not_connected,
    run_with_host,
    servers_with_tool,
    show_unconnected,
    unknown_server_and_tool,
    unknown_tool,
    wait_for_servers,
)
from dragoman.cli.options import (
    adhoc_server,
    change_adhoc_server,
    frozen_option,
    json_option,
    mcp_config_option,
    parse_arguments,
    read_arguments,
    take_url,
    yes_option,
)
from dragoman.cli.render import json, text
from dragoman.cli.render.columns import echo_wrapped
from dragoman.cli.render.progress import ProgressLine
from dragoman.cli.render.servers import counted
from dragoman.cli.terminal_interaction import CommandLineUser
from dragoman.config.load import Configuration
from dragoman.host import Host
from dragoman.interaction import Sampler

output_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE|FOLDER",
    help="Write images, audio and files of the result to this place; if there are none, the text.",
)
timeout_option = click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Time limit."
)


@click.command("call")
@click.argument(
    "words", nargs=-1, required=True, metavar="[SERVER|URL] TOOL [ARGUMENTS]...", shell_complete=complete_tool
)
@mcp_config_option
@json_option
@output_option
@timeout_option
@click.option(
    "--detach", is_flag=True, help="Do not wait if the server runs the call as a task; print the task's id."
)
@click.option(
    "--model",
    metavar="PROVIDER:NAME",
    help="The model that answers sampling requests of the server; each request is shown to you first.",
)
@click.option("--base-url", metavar="URL", help="The URL of another endpoint for that model.")
@yes_option
@frozen_option
def command(
    words: tuple[str, ...],
    as_json: bool,
    output: Path | None,
    timeout: float | None,
    detach: bool,
    model: str | None,
    base_url: str | None,
    yes: bool,
    frozen: Path | None,
) -> None:
    """Calls TOOL with ARGUMENTS: key=value words, one JSON object, @FILE with a JSON object, or - for stdin.

    \b
    dragoman call mcp__files__list_directory path=.
    dragoman call list_directory path=.                      if only one server has it
    dragoman call https://example.com/mcp get-sum a=1 b=2    no configuration needed
    dragoman call --stdio 'npx -y @x/server' get-sum @sum.json

    Running this command allows the call. A question is asked only if an ask rule applies, or if the server
    declares the tool destructive; in a script give --yes.
    """
    words = take_url(words)
    if not words:
        raise click.UsageError("give the name of a tool after the URL; `dragoman tools URL` lists them")
    if output is not None and not output.parent.is_dir():
        raise click.UsageError(f"there is no folder {str(output.parent)!r} to write to")
    sampler = None if model is None else _sampler(model, base_url)
    sources, configuration, _ = load_with_servers(servers_to_start=lambda known: call_parts(words, known)[0])
    only, tool, arguments = call_parts(words, configuration)
    arguments = read_arguments(arguments)

    async def work(host: Host) -> CallOutcome | None:
        await wait_for_servers(host, silent=as_json)
        remember_tools(host)
        if (signing := host.sign_in_tools().get(tool)) is not None:
            await _sign_in(host, signing.signs_in_to, as_json=as_json)
            return None
        found = find_tool(host, tool)
        if found is None:
            if only is None:
                show_unconnected(host.servers.values())
                if arguments and _may_be_tool(arguments[0]):
                    raise unknown_server_and_tool(host, tool, arguments[0])
                raise unknown_tool(host, tool)
            raise_if_not_connected(host)
            if not tool.startswith("mcp__"):
                raise unknown_tool(host, tool)
        parsed = parse_arguments(arguments, found.input_schema if found else {})
        name = found.name if found else tool
        with ProgressLine() as line:
            outcome = await host.call(
                name,
                parsed,
                timeout_seconds=timeout,
                on_progress=line.update,
                raw=True,
                background_after_seconds=0.0 if detach else None,
                moves_tasks_only=True,  # calls that are not tasks end with this process
            )
        # Shown before the host is closed: a server may take long to exit.
        show_result(outcome, as_json=as_json, output=output)
        if outcome.task is not None and host.servers[outcome.server].pid is not None:
            _warn_of_end(outcome.server)
        return outcome

    user = CommandLineUser(sources, assumes_yes=yes)
    outcome = run_with_host(
        sources, work, only=only, tool_lock=frozen, interaction=user, audit=True, sampler=sampler
    )
    if outcome is not None:
        sys.exit(exit_code_of(outcome))


def _warn_of_end(server: str) -> None:
    why = f"{one_line(server)} runs on this computer and ends with this command."
    then = "The task continues, or its result is kept, only if the server itself stores its tasks."
    echo_wrapped(f"{why} {then}", label="! ", colour="yellow", err=True)


def exit_code_of(outcome: CallOutcome) -> int:
    if outcome.error is not None:
        return exit_codes.for_error(outcome.error)
    return exit_codes.FAILED if outcome.is_error else exit_codes.OK


def _sampler(model: str, base_url: str | None) -> Sampler:
    """The model for sampling requests of servers that are allowed to make them."""
    from dragoman.agent.models import LazyModel, choose_model
    from dragoman.agent.sampler import ModelSampler

    if (adhoc := adhoc_server()) is not None:
        change_adhoc_server({**adhoc.entry, "sampling": "ask"})
    return ModelSampler(LazyModel(choose_model(model, base_url)))


async def _sign_in(host: Host, server: str, *, as_json: bool) -> None:
    """Signs in to the server, and waits until that is done."""
    from dragoman.cli.sign_in_screen import TerminalSignIn

    view = await host.sign_in(server, TerminalSignIn(server))
    if as_json:
        json.echo({"server": server, "status": view.status, "toolCount": view.tool_count})
    else:
        click.echo(f"Signed in to {one_line(server)}: {view.status}, {counted(view.tool_count, 'tool')}.")


def call_parts(
    words: tuple[str, ...], configuration: Configuration
) -> tuple[list[str] | None, str, tuple[str, ...]]:
    """The servers to start (None for all), the tool as typed, and its arguments."""
    adhoc = adhoc_server()
    if adhoc is not None:
        return [adhoc.name], words[0], words[1:]
    first, *rest = words
    # `SERVER TOOL`: a word after a tool would be an argument, and arguments are never plain words.
    if rest and first in configuration.servers and _may_be_tool(rest[0]):
        return [first], rest[0], tuple(rest[1:])
    return servers_with_tool(first, configuration), first, tuple(rest)


def _may_be_tool(word: str) -> bool:
    """Whether the word can be the name of a tool. Arguments have a form that names do not have."""
    return word[0:1] not in ("{", "@", "-") and "=" not in word


def show_result(outcome: CallOutcome, *, as_json: bool, output: Path | None) -> None:
    if outcome.task is not None and not as_json:
        echo_wrapped(outcome.text)
        return
    written = frozenset[int]()
    if output is not None and outcome.error is None:
        written = text.write_files(outcome, output)
    if as_json:
        json.echo(json.outcome(outcome))
    elif outcome.error is not None:
        text.show_error(outcome.error)
    else:
        text.show_outcome(outcome, written)
