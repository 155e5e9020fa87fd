"""Finds the host for a request of a client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final, TypeVar

from dragoman.calls.prompts import Prompts
from dragoman.calls.resources import Resources
from dragoman.catalog.prompts import Prompt
from dragoman.catalog.resources import Resource, ResourceTemplate
from dragoman.events import ConfigurationChanged, ServerStateChanged
from dragoman.host import Host
from dragoman.interaction import Caller
from dragoman.servers.status import ServerStatus
from dragoman.toolbox import is_connecting

T = TypeVar("T")

OWN_LIST_SECONDS: Final = 5.0
"""How long a list of resources or prompts waits for the servers of the caller."""


class HostChoice:
    """Finds the host for a request: the shared one, or the one with the caller's own sign-ins."""

    def __init__(self, shared: Host, own: Host | None, caller: Caller) -> None:
        self._shared = shared
        self._own = own
        self._caller = caller

    def host_of(self, server: str) -> Host:
        is_own = self._own is not None and server in self._own.configuration.servers
        return self._own if is_own and self._own is not None else self._shared

    def servers(self) -> list[ServerStatus]:
        return [status for host in self._hosts for status in host.servers.values()]

    @property
    def _hosts(self) -> list[Host]:
        return [self._shared] if self._own is None else [self._shared, self._own]

    async def ready(self, seconds: float, only: Collection[str]) -> None:
        """Waits until these servers are connected or have failed, or the time is up."""
        await asyncio.gather(*(host.ready(seconds, only=only) for host in self._hosts))

    async def has_waited(self, seconds: float, may_use: Callable[[str], bool]) -> bool:
        """Waits until no usable server is being connected or reconnected, or the time is up. Returns whether
        there was one to wait for."""
        return any(await asyncio.gather(*(_has_waited(host, seconds, may_use) for host in self._hosts)))

    def resources_of(self, server: str) -> Resources:
        return self.host_of(server).resources.for_caller(self._caller)

    def prompts_of(self, server: str) -> Prompts:
        return self.host_of(server).prompts.for_caller(self._caller)

    async def resources(self) -> list[Resource]:
        return await self._both(lambda host: host.resources.for_caller(self._caller).list())

    async def templates(self) -> list[ResourceTemplate]:
        return await self._both(lambda host: host.resources.for_caller(self._caller).templates())

    async def prompts(self) -> list[Prompt]:
        return await self._both(lambda host: host.prompts.for_caller(self._caller).list())

    async def _both(self, listed: Callable[[Host], Awaitable[Iterable[T]]]) -> list[T]:
        if self._own is None:
            return [*await listed(self._shared)]
        shared, own = await asyncio.gather(listed(self._shared), _within(listed(self._own)))
        return [*shared, *own]


async def _has_waited(host: Host, seconds: float, may_use: Callable[[str], bool]) -> bool:
    changes, has_waited = host.events(ServerStateChanged, ConfigurationChanged), False
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while any(is_connecting(each) and may_use(each.name) for each in host.servers.values()):
                has_waited = True
                if await anext(changes, None) is None:
                    break  # the host was closed
    return has_waited


async def _within(listing: Awaitable[Iterable[T]]) -> Iterable[T]:
    """The items; empty if it takes too long, so that the lists of other servers are not delayed."""
    try:
        async with asyncio.timeout(OWN_LIST_SECONDS):
            return await listing
    except TimeoutError:
        return ()
