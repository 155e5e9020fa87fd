"""What every command that connects begins with: its sources, and a configuration with something in it."""

from __future__ import annotations

import click

from dragoman.cleaning import one_line
from dragoman.cli.approving import load_asking
from dragoman.cli.options import no_servers, sources_of
from dragoman.cli.render.servers import show_problems
from dragoman.config.load import Configuration
from dragoman.config.scopes import Sources


def opened(given: tuple[str, ...], strict: bool, server: str | None = None) -> tuple[Sources, Configuration]:
    """Asks about what waits for approval and tells what is wrong in files. `server`: one that must exist."""
    sources = sources_of(given, strict)
    configuration = load_asking(sources)
    show_problems(configuration)
    if not configuration.servers and configuration.connectors is None:
        raise no_servers(configuration)
    if server is not None and server not in configuration.servers:
        names = one_line(", ".join(configuration.servers))
        raise click.UsageError(f"there is no server {server!r}; there are: {names}")
    return sources, configuration
