"""Sends requests for lists, resources, prompts and completion: finds the session, keeps the time limit, and
sends a lost request once more, for none of these changes anything on a server.

Nothing is judged here: `requests.py` has asked whether a request may be made, and is told (`Changed`) if the
server's entry is another by the time a session is there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Raw, Struct

from dragoman.calls.input_rounds import Answerer, Read, request_with_input
from dragoman.calls.recovery import Changed, react
from dragoman.catalog.lists import Lists, ListsOf, offers, tells_of_changes
from dragoman.clock import Clock
from dragoman.connections.session import Session
from dragoman.content.redact import Redactor
from dragoman.errors import ConnectionLost, NotConnected
from dragoman.names import ServerName

T = TypeVar("T")
L = TypeVar("L", bound=Struct)


class Servers(Protocol):
    """The way to servers, as far as asking needs it."""

    @property
    def lists(self) -> Lists: ...
    @property
    def request_seconds(self) -> float: ...
    def names(self) -> Collection[ServerName]: ...
    def naming_servers(self) -> Collection[str]:
        """The servers on which names of prompts depend."""
        ...

    def link_of(self, server: ServerName) -> object: ...
    def redactor_of(self, server: ServerName) -> Redactor | None: ...
    def session_of(self, server: ServerName) -> Session | None: ...
    async def awaited_session(self, server: ServerName, seconds: float) -> Session: ...
    def answerer_of(self, server: ServerName) -> Answerer: ...
    def capabilities_of(self, server: ServerName) -> Mapping[str, Any]: ...
    def absence_of(self, server: ServerName) -> str | None:
        """Why a server that is wanted cannot be asked now; None if it is there, or not wanted."""
        ...


class Listed(Struct, Generic[T], frozen=True):
    """What servers list, and why something may be missing from it."""

    items: tuple[T, ...] = ()
    problems: tuple[str, ...] = ()
    """Each begins with the server's name."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Asking:
    def __init__(self, servers: Servers, clock: Clock) -> None:
        self.servers = servers
        self._clock = clock

    def known(self, server: str) -> ServerName:
        """The server's name; `NotConnected` if there is none."""
        names = self.servers.names()
        if server not in names:
            hint = f"There are: {', '.join(sorted(names)) or 'none'}."
            raise NotConnected(server, "not configured", None, hint=hint)
        return ServerName(server)

    async def session(self, server: ServerName, seconds: float | None = None) -> Session:
        """The session, also that of a server which is on its way back; `NotConnected` if there is none.

        `Changed` if the entry was replaced during the wait.
        """
        found = self.servers.session_of(server)
        if found is not None:
            return found
        check = self._check_of(server)
        try:
            found = await self.servers.awaited_session(server, seconds or self.servers.request_seconds)
        except NotConnected:
            check()
            raise
        check()
        return found

    async def ask(
        self,
        server: ServerName,
        method: str,
        params: Mapping[str, Any],
        read: Read[T],
        *,
        about: str,
        timeout_seconds: float | None = None,
    ) -> T:
        """The answer, or the error that says what became of it; `Changed` if the entry was replaced."""
        check = self._check_of(server)
        seconds = self.servers.request_seconds if timeout_seconds is None else timeout_seconds
        deadline = self._clock.monotonic() + seconds
        attempt = 1
        while True:
            session = await self.session(server, self._left(deadline))
            check()  # between two attempts
            try:
                return await request_with_input(
                    session,
                    method,
                    params,
                    read,
                    about=about,
                    timeout_seconds=self._left(deadline),
                    answerer=self.servers.answerer_of(server),
                    check=check,
                )
            except ConnectionLost as error:
                if react(error, attempt=attempt, harmless=True).reaction == "give up":
                    raise
                attempt += 1

    def _left(self, deadline: float) -> float:
        return max(0.001, deadline - self._clock.monotonic())

    def _check_of(self, server: ServerName) -> Callable[[], None]:
        link = self.servers.link_of(server)

        def check() -> None:
            if self.servers.link_of(server) is not link:
                raise Changed

        return check

    async def list_of(self, lists: ListsOf[L], server: ServerName, *, fresh: bool) -> Listed[L]:
        """One server's list; waits for a server that is on its way back."""
        check = self._check_of(server)

        async def fetch(params: Mapping[str, Any]) -> Raw:
            try:
                return await self.ask(server, lists.kind.method, params, _as_it_is, about=lists.kind.what)
            except Changed:  # others may wait for the same list: theirs is incomplete
                raise NotConnected(server, "replaced", "its entry has changed") from None

        session = await self.session(server)
        if not offers(self.servers.capabilities_of(server), lists.kind.capability):
            return Listed(problems=(f"{server}: it offers no {lists.kind.capability}",))
        promised = tells_of_changes(self.servers.capabilities_of(server), lists.kind.capability)
        found = await lists.of(server, session, fetch, promised=promised, fresh=fresh)
        check()
        return Listed(found.items, tuple(f"{server}: {problem}" for problem in found.problems))


def _as_it_is(raw: Raw) -> tuple[str, Raw]:
    """Lists are never asked back about, so their kind is judged where they are read."""
    return "complete", raw
