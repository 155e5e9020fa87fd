"""`dragoman read` and `resources`: read one resource, and list the resources of servers."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from dragoman.cleaning import one_line, visible
from dragoman.cli import exit_codes
from dragoman.cli.commands.completion import complete_server
from dragoman.cli.common import (
    OfferedItems,
    find_tool,
    load_with_servers,
    raise_if_not_connected,
    report_not_found,
    run_with_host,
    show_listing,
    unknown_tool,
    wait_for_servers,
)
from dragoman.cli.options import (
    adhoc_server,
    json_option,
    list_options,
    mcp_config_option,
    one_pair,
    pairs,
    parse_arguments,
    read_arguments,
    take_url,
    yes_option,
)
from dragoman.cli.render import json, resources_prompts
from dragoman.cli.render.progress import ProgressLine
from dragoman.cli.render.resources_prompts import resource_json, show_resources, template_json
from dragoman.cli.render.servers import show_problem
from dragoman.cli.render.text import write_named
from dragoman.cli.terminal_interaction import CommandLineUser
from dragoman.errors import CallError
from dragoman.host import Host


@click.command("read")
@click.argument(
    "words", nargs=-1, required=True, metavar="SERVER|URL URI [VALUES]...", shell_complete=complete_server
)
@mcp_config_option
@json_option
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the resource to a file."
)
@yes_option
@click.option("--watch", is_flag=True, help="Print the resource again whenever it changes, until Ctrl-C.")
@click.option(
    "--call",
    "called",
    metavar="'TOOL [ARGUMENTS]...'",
    help="With --watch: call a tool of SERVER once the resource is watched, in the same session.",
)
@click.option(
    "--complete",
    metavar="VARIABLE=BEGINNING",
    help="Print completions for one variable of a template and exit.",
)
def command(
    words: tuple[str, ...],
    as_json: bool,
    output: Path | None,
    yes: bool,
    watch: bool,
    called: str | None,
    complete: str | None,
) -> None:
    """Prints the resource at URI of SERVER.

    URI may be a template as `dragoman resources` lists it; VALUES (name=value) are the values of its
    variables. On a terminal, invisible characters are made visible; otherwise, and with -o, the bytes are
    written unchanged. Running this command allows the request; a question is asked only if an ask rule
    applies. SERVER may be a URL, which needs no configuration. With --stdio, SERVER is left out.

    The value of --call is written like the words after `dragoman call`, in quotes. Its result goes to stderr.
    """
    # With --stdio the first word is the resource, whose URI may look like a server's URL.
    rest = words if adhoc_server() is not None else take_url(words)
    adhoc = adhoc_server()
    server, rest = (adhoc.name, rest) if adhoc is not None else (rest[0], rest[1:])
    if not rest:
        raise click.UsageError("expected a server and the URI of a resource")
    uri, values = rest[0], rest[1:]
    filling = pairs(values)
    typed = None if complete is None else one_pair(complete)
    tool = None if called is None else _tool_words(called, watch=watch)
    if output is not None and not output.parent.is_dir():
        raise click.UsageError(f"there is no folder {str(output.parent)!r} to write to")
    sources = load_with_servers(server).sources

    async def work(host: Host) -> int:
        await wait_for_servers(host, silent=as_json)
        raise_if_not_connected(host)
        if typed is not None:
            found = await host.resources.complete(server, uri, *typed, given=filling)
            resources_prompts.show_completion(found, as_json=as_json)
            return exit_codes.OK
        address = uri
        if filling or "{" in uri:
            templates = {each.uri_template: each for each in await host.resources.templates(server)}
            if uri not in templates:
                return report_not_found(_no_template(server, uri, templates), as_json=as_json)
            address = templates[uri].expand(filling)
        reading = _Reading(host, server, address, as_json, output)
        await (reading.watch(tool) if watch else reading.once())
        return exit_codes.OK

    # Ctrl-C is the normal end of --watch, not a failure.
    with contextlib.suppress(*([KeyboardInterrupt] if watch else [])):
        user = CommandLineUser(sources, assumes_yes=yes)
        audit = None if tool is None else True
        sys.exit(run_with_host(sources, work, only=[server], interaction=user, audit=audit))


def _no_template(server: str, uri: str, known: Iterable[str]) -> CallError:
    near = difflib.get_close_matches(uri, known, n=2)
    hint = f"Did you mean {' or '.join(near)}?" if near else "`dragoman resources` lists the templates."
    return CallError(server, f"{server} has no template {uri}", hint=hint)


def _tool_words(called: str, *, watch: bool) -> list[str]:
    """The name of a tool and its arguments."""
    if not watch:
        raise click.UsageError("--call needs --watch; `dragoman call` calls a tool")
    try:
        words = shlex.split(called)
    except ValueError as error:
        raise click.UsageError(f"--call: {error}") from None
    if not words:
        raise click.UsageError("--call needs the name of a tool")
    return [words[0], *read_arguments(tuple(words[1:]))]


class _Reading:
    """One resource, and the destination of its contents."""

    def __init__(self, host: Host, server: str, uri: str, as_json: bool, output: Path | None) -> None:
        self._host = host
        self._server = server
        self._uri = uri
        self._as_json = as_json
        self._output = output

    async def watch(self, tool: Sequence[str] | None = None) -> None:
        # Subscribes first: a change between reading and subscribing would be missed.
        async with self._host.resources.subscribed(self._server, self._uri) as updates:
            await self.once()
            if tool is not None:
                await self._call(*tool)
            async for _ in updates:
                await self.once()

    async def _call(self, name: str, *words: str) -> None:
        found = find_tool(self._host, name)
        if found is None:
            raise unknown_tool(self._host, name)
        arguments = parse_arguments(words, found.input_schema)
        with ProgressLine() as line:
            outcome = await self._host.call(found.name, arguments, on_progress=line.update)
        outcome.raise_for_error()
        click.echo(visible(outcome.text), err=True)

    async def once(self) -> None:
        contents = await self._host.resources.read(self._server, self._uri)
        for problem in contents.problems:
            show_problem(problem)
        if self._output is not None:
            await self._keep(self._output, resources_prompts.bytes_of(contents))
        elif self._as_json:
            json.echo(contents)
        else:
            resources_prompts.show_contents(contents)

    async def _keep(self, output: Path, data: bytes) -> None:
        try:
            await asyncio.to_thread(write_named, output, data)
        except OSError as error:
            raise click.FileError(str(output), error.strerror) from None
        click.echo(f"{len(data)} bytes written to {one_line(str(output))}", err=True)


@click.command("resources")
@list_options
def resources(words: tuple[str, ...], as_json: bool, server: str | None, full: bool, yes: bool) -> None:
    """Lists the resources and resource templates of servers.

    `dragoman read` reads one. Servers that a rule denies are not shown; if one of them is named, the request
    is refused. SERVER is a configured name; a URL, or a command given with --stdio, needs no configuration.
    """

    async def read(host: Host, server: str | None) -> OfferedItems:
        listed, templates = await host.resources.list(server), await host.resources.templates(server)
        return OfferedItems(
            {"resources": [*map(resource_json, listed)], "templates": [*map(template_json, templates)]},
            (*listed.problems, *templates.problems),
            lambda: show_resources(listed.items, templates.items, full=full),
        )

    show_listing(words, server, read, as_json=as_json, yes=yes)
