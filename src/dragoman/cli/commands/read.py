"""`dragoman read`: one resource."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from dragoman.catalog.resources import Template
from dragoman.cli import exit_codes
from dragoman.cli.opening import opened
from dragoman.cli.options import json_option, mcp_config_option, pairs, run_with_host
from dragoman.cli.render import json, offers
from dragoman.cli.render.servers import show_problem
from dragoman.cli.render.waiting import Waiting
from dragoman.errors import CallError
from dragoman.host import Host


@click.command("read", short_help="Read one resource of a server.")
@click.argument("server")
@click.argument("uri")
@click.argument("values", nargs=-1)
@mcp_config_option
@json_option
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write it to a file.")
@click.option("--watch", is_flag=True, help="Print it again whenever it changes, until Ctrl-C.")
@click.option(
    "--complete", metavar="GAP=BEGINNING", help="Print what a gap may be filled with, and nothing else."
)
def command(
    server: str,
    uri: str,
    values: tuple[str, ...],
    given: tuple[str, ...],
    strict: bool,
    as_json: bool,
    output: Path | None,
    watch: bool,
    complete: str | None,
) -> None:
    """Prints the resource at URI of SERVER.

    URI may be a template as `dragoman resources` lists it; VALUES (name=value) fill its gaps. On a terminal
    everything invisible is made visible; elsewhere, and with -o, the bytes come out as they are.
    """
    sources, _ = opened(given, strict, server)

    async def work(host: Host) -> int:
        with Waiting(host):
            await host.ready()
        if complete is not None:
            ((gap, beginning),) = pairs((complete,)).items()
            found = await host.resources.complete(server, uri, gap, beginning, given=pairs(values))
            offers.show_completion(found, as_json=as_json)
            return exit_codes.OK
        address = await _address(host, server, uri, pairs(values))
        await _print(host, server, address, as_json=as_json, output=output)
        if watch:
            async with host.resources.subscribed(server, address) as updates:
                async for _ in updates:
                    await _print(host, server, address, as_json=as_json, output=output)
        return exit_codes.OK

    # Ctrl-C is how watching is left, so it is no failure.
    with contextlib.suppress(*([KeyboardInterrupt] if watch else [])):
        sys.exit(run_with_host(sources, work, only=[server]))


async def _address(host: Host, server: str, uri: str, values: Mapping[str, str]) -> str:
    """The URI itself, or the template of that spelling with its gaps filled."""
    if not values and "{" not in uri:
        return uri
    templates = {template.uri_template: template for template in await host.resources.templates(server)}
    found: Template | None = templates.get(uri)
    if found is None:
        raise CallError(
            server, f"{server} has no template {uri}", hint="`dragoman resources` lists what there is."
        )
    return found.expand(values)


async def _print(host: Host, server: str, uri: str, *, as_json: bool, output: Path | None) -> None:
    contents = await host.resources.read(server, uri)
    for problem in contents.problems:
        show_problem(problem)
    if as_json:
        json.echo(contents)
    elif output is not None:
        await asyncio.to_thread(output.write_bytes, offers.bytes_of(contents))
        click.echo(f"written to {output}", err=True)
    else:
        offers.show_contents(contents)
