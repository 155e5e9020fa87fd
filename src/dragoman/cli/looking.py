"""The look at configuration that every command begins with."""

from __future__ import annotations

from dragoman.cli.render.servers import show_problem, show_problems
from dragoman.config.load import Configuration, load
from dragoman.config.scopes import Sources


def look(sources: Sources | None = None, *, everything: bool = False) -> Configuration:
    """The configuration. A policy that cannot be read is told by every command, other problems if wanted."""
    configuration = load(sources or Sources.here())
    if everything:
        show_problems(configuration)
    elif configuration.policy.broken:
        show_problem(configuration.problems[0])
    return configuration
