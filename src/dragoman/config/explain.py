"""Everything that is known about one server: why it has its state, and the place of its entry in a file."""

from __future__ import annotations

from msgspec import Struct

from dragoman.config.jsonc import locate
from dragoman.config.load import Configuration
from dragoman.config.merge import Candidate, ConfiguredServer
from dragoman.config.policy import Verdict


class Explained(Struct, frozen=True):
    server: ConfiguredServer
    line: int | None
    """Where its entry begins in its file."""
    verdict: Verdict
    """What policy says, and by which rule."""


def explain(configuration: Configuration, server: ConfiguredServer) -> Explained:
    verdict = configuration.judgements.policy(server.candidate, server.config)
    return Explained(server, line_of(configuration, server.candidate), verdict)


def line_of(configuration: Configuration, candidate: Candidate) -> int | None:
    part = configuration.parts[candidate.part] if candidate.part < len(configuration.parts) else None
    if part is None or part.path is None:
        return None
    place = locate(part.text, ["mcpServers", candidate.name])
    return place[0] if place else None
