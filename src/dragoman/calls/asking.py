"""Asking servers for what is no tool: lists, resources, prompts, completion.

I own: finding the session, the time limit, asking once more where the first time came to nothing, and
putting several servers' lists together so that one that fails does not spoil the others. What is asked here
changes nothing on a server, so a lost request may always be made again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Raw, Struct

from dragoman.calls.recovery import react
from dragoman.calls.rounds import Answerer, Read, ask_in_rounds
from dragoman.catalog.lists import Lists, ListsOf, ServerList, offers, tells_of_changes
from dragoman.clock import Clock
from dragoman.connections.session import Session
from dragoman.errors import ConnectionLost, DragomanError, NotConnected
from dragoman.names import ServerName

T = TypeVar("T")


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
        """The session, also that of a server which is on its way back; `NotConnected` if there is none."""
        found = self.servers.session_of(server)
        if found is not None:
            return found
        return await self.servers.awaited_session(server, seconds or self.servers.request_seconds)

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
        """The answer, or the error that says what became of it."""
        seconds = self.servers.request_seconds if timeout_seconds is None else timeout_seconds
        deadline = self._clock.monotonic() + seconds
        attempt = 1
        while True:
            session = await self.session(server, self._left(deadline))
            try:
                return await ask_in_rounds(
                    session,
                    method,
                    params,
                    read,
                    about=about,
                    timeout_seconds=self._left(deadline),
                    answerer=self.servers.answerer_of(server),
                )
            except ConnectionLost as error:
                if react(error, attempt=attempt, harmless=True).reaction == "give up":
                    raise
                attempt += 1

    def _left(self, deadline: float) -> float:
        return max(0.001, deadline - self._clock.monotonic())

    async def listed(self, lists: ListsOf[T], server: str | None, *, fresh: bool) -> Listed[T]:
        """One server's list, or those of all that have one.

        Only if one server is named, its absence is an error; otherwise it is told among the problems.
        """
        if server is not None:
            name = self.known(server)
            await self.session(name)
            if not offers(self.servers.capabilities_of(name), lists.kind.capability):
                return Listed(problems=(f"{name}: it offers no {lists.kind.capability}",))
            return _joined({name: await self._list_of(lists, name, fresh)})
        names = sorted(self.servers.names())
        found = await asyncio.gather(*(self._list_or_reason(lists, name, fresh) for name in names))
        return _joined(dict(zip(names, found)))

    async def _list_or_reason(self, lists: ListsOf[T], server: ServerName, fresh: bool) -> ServerList[T]:
        """Nobody is waited for who is not connected now."""
        if self.servers.session_of(server) is None:
            reason = self.servers.absence_of(server)
            return ServerList(problems=() if reason is None else (reason,))
        if not offers(self.servers.capabilities_of(server), lists.kind.capability):
            return ServerList()
        try:
            return await self._list_of(lists, server, fresh)
        except DragomanError as error:
            return ServerList(problems=(str(error),))

    async def _list_of(self, lists: ListsOf[T], server: ServerName, fresh: bool) -> ServerList[T]:
        async def fetch(params: Mapping[str, Any]) -> Raw:
            return await self.ask(server, lists.kind.method, params, _as_it_is, about=lists.kind.what)

        session = await self.session(server)
        promised = tells_of_changes(self.servers.capabilities_of(server), lists.kind.capability)
        return await lists.of(server, session, fetch, promised=promised, fresh=fresh)


def _as_it_is(raw: Raw) -> tuple[str, Raw]:
    """Lists are never asked back about, so their kind is judged where they are read."""
    return "complete", raw


def _joined(found: Mapping[ServerName, ServerList[T]]) -> Listed[T]:
    return Listed(
        tuple(item for each in found.values() for item in each.items),
        tuple(f"{server}: {problem}" for server, each in found.items() for problem in each.problems),
    )
