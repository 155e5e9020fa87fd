"""Finding a server by the name a person typed."""

from __future__ import annotations

from dragoman.cleaning import one_line
from dragoman.config.load import Configuration
from dragoman.config.merge import ConfiguredServer
from dragoman.errors import ConfigError, NotFound


def find(configuration: Configuration, name: str) -> ConfiguredServer:
    """The server in effect, or a `ConfigError` with names that may have been meant."""
    import difflib

    if name in configuration.servers:
        return configuration.servers[name]
    for dropped in configuration.dropped:
        if dropped.candidate.name == name:
            raise ConfigError(
                f"server {name!r} of {dropped.candidate.origin} is not in effect: {dropped.text}",
                hint="`dragoman config explain` shows everything that was dropped.",
            )
    near = difflib.get_close_matches(name, configuration.servers, 3)
    known = one_line(", ".join(near or list(configuration.servers)[:10]))
    hint = "`dragoman mcp list` shows what there is."
    if known:
        hint = f"Did you mean {known}?" if near else f"There are: {known}."
    raise NotFound(f"there is no server {name!r}", hint=hint)
