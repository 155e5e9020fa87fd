"""Sends requests for lists, resources, prompts and completion: finds the session, keeps the time limit, and
sends a lost request once more, for none of these changes anything on a server.

Nothing is judged here: `requests.py` has asked whether a request may be made, and learns (`Changed`) if the
server's entry is another by the time a session is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final, Generic, TypeVar

from msgspec import Raw, Struct

from dragoman.calls.input_rounds import Exchange, Read, request_with_input
from dragoman.calls.recovery import Changed, react
from dragoman.catalog.overview import enumerated
from dragoman.connections.session import Session
from dragoman.errors import ConnectionLost, NotConnected
from dragoman.interaction import LOCAL_CALLER, Caller, RelatedCall
from dragoman.servers.lists import ListReader
from dragoman.servers.registry import ServerRegistry
from dragoman.servers.server import Server

_MAY_REQUIRE_INPUT: Final = frozenset({"resources/read", "prompts/get"})
"""Requests that a server may answer with questions."""

current_request: ContextVar[tuple[str, Caller]] = ContextVar("dragoman request", default=("", LOCAL_CALLER))
"""The call id of the request that the running code makes, and its caller."""

still_allowed: ContextVar[Callable[[], None]] = ContextVar("dragoman check", default=lambda: None)
"""Raises `Changed` if the request that the running code makes has to be judged again."""

T = TypeVar("T")
L = TypeVar("L", bound=Struct)


class Listed(Struct, Generic[T], frozen=True):
    """What servers list, and why something may be missing from it."""

    items: tuple[T, ...] = ()
    problems: tuple[str, ...] = ()
    """What is missing and why; each text begins with the server's name."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Sender:
    """Sends requests that have been judged."""

    def __init__(self, servers: ServerRegistry) -> None:
        self.servers = servers

    def known(self, name: str) -> Server:
        """The server; `NotConnected` if there is none of this name."""
        server = self.servers.find(name)
        if server is None:
            hint = f"There are: {enumerated(sorted(self.servers)) or 'none'}."
            raise NotConnected(name, "not configured", None, hint=hint)
        return server

    async def session(self, server: Server, seconds: float | None = None) -> Session:
        """The session, also that of a server which is reconnecting; `NotConnected` if there is none.

        `Changed` if the entry was replaced during the wait.
        """
        found = server.session()
        if found is not None:
            return found
        try:
            found = await server.wait_for_session(seconds or server.request_seconds)
        except NotConnected:
            if server.name in self.servers:
                self.check(server)
            raise
        self.check(server)
        return found

    async def send(
        self,
        server: Server,
        method: str,
        params: Mapping[str, Any],
        read: Read[T],
        *,
        about: str,
        timeout_seconds: float | None = None,
    ) -> T:
        """The answer; otherwise an error that states whether the request may have been carried out; `Changed`
        if the entry was replaced."""
        seconds = server.request_seconds if timeout_seconds is None else timeout_seconds
        deadline = self.servers.clock.monotonic() + seconds
        allowed = still_allowed.get()  # also asked where the server's questions are answered, in another task
        attempt = 1
        while True:
            session = await self.session(server, self._left(deadline))
            try:
                exchange = Exchange(
                    session,
                    method,
                    params,
                    read,
                    server.requests,
                    check=lambda: self.check(server, allowed),
                    call=RelatedCall(method, about, *current_request.get())
                    if method in _MAY_REQUIRE_INPUT
                    else None,
                )
                return await request_with_input(exchange, self._left(deadline))
            except ConnectionLost as error:
                if react(error, attempt=attempt, retry_safe=True).reaction == "give up":
                    raise
                attempt += 1

    def _left(self, deadline: float) -> float:
        return max(0.001, deadline - self.servers.clock.monotonic())

    def check(self, server: Server, allowed: Callable[[], None] | None = None) -> None:
        """Raises `Changed` if the server was removed, if its entry is another now, or if a rule denies the
        request by now."""
        if self.servers.find(server.name) is not server:
            raise Changed
        (allowed or still_allowed.get())()

    async def list_of(self, reader: ListReader[L], server: Server, *, fresh: bool) -> Listed[L]:
        """One server's list; waits for a server that is reconnecting."""

        async def fetch(params: Mapping[str, Any]) -> Raw:
            try:
                return await self.send(server, reader.kind.method, params, _as_it_is, about=reader.kind.what)
            except Changed:  # others may wait for the same list: theirs is incomplete
                raise NotConnected(server.name, "replaced", "its entry has changed") from None

        session = await self.session(server)
        capability = reader.kind.capability
        if not server.offers(capability):
            return Listed(problems=(f"{server.name}: it offers no {capability}",))
        found = await reader.get(
            session, fetch, notifies_changes=server.notifies_changes(capability), fresh=fresh
        )
        self.check(server)
        return Listed(found.items, tuple(f"{server.name}: {problem}" for problem in found.problems))


def _as_it_is(raw: Raw) -> tuple[str, Raw]:
    """Lists never return `input_required`; their kind is checked where they are read."""
    return "complete", raw
