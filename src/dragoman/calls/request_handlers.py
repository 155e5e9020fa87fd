"""The handlers for requests of servers: which kinds of requests each server may send.

Puts the handlers of elicitation, sampling and roots together for one server, from its entry and from what the
program gave to the host.
"""

from __future__ import annotations

from dragoman.calls.elicitation import Elicitor, elicitation_handlers
from dragoman.calls.roots import Roots
from dragoman.calls.sampling import Sampling
from dragoman.config.merge import ConfiguredServer
from dragoman.connections.server_requests import RequestHandler


class RequestHandlers:
    """Makes the handlers for the servers of one host."""

    def __init__(self, elicitor: Elicitor, sampling: Sampling, roots: Roots) -> None:
        self._elicitor = elicitor
        self._sampling = sampling
        self._roots = roots

    def of(self, entry: ConfiguredServer) -> tuple[RequestHandler, ...]:
        """The handlers for the requests of this server. What is not in them is refused."""
        config = entry.config
        if config is None:
            return ()
        return (
            *elicitation_handlers(entry.name, self._elicitor),
            *self._sampling.handlers(entry.name, config),
            *self._roots.handlers(config),
        )
