"""Resources of all servers: listed, read, watched.

I own: what a program does with resources. It is the program's own act; a model's way to them is
`resource_tools.py`, through the pipeline like every call. What is read comes back untouched;
`content/media.py` makes of it what a model may see.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final, Protocol

from dragoman.calls.asking import Asking, Listed, Servers
from dragoman.calls.completion import complete
from dragoman.catalog.lists import offers
from dragoman.catalog.prompts import Completion
from dragoman.catalog.resources import (
    ReadReply,
    Resource,
    ResourceContents,
    Template,
    read_contents,
)
from dragoman.clock import Clock
from dragoman.connections.watching import Updates, Watching
from dragoman.errors import CallError, InvalidArguments, RemoteError
from dragoman.names import ServerName
from dragoman.protocol import INVALID_PARAMS
from dragoman.wire.uris import is_usable

NOT_FOUND: Final = (INVALID_PARAMS, -32002)
"""How servers say that they have no such resource: in the modern era, and before."""


KEEPING_BYTES: Final = 1024
"""What keeping a resource takes besides what it holds: very many small ones are not free."""


class WatchedServers(Servers, Protocol):
    """The same, with the way to hear of changes."""

    def watching_of(self, server: ServerName) -> Watching: ...


class Resources:
    """What `Host.resources` is."""

    def __init__(self, servers: WatchedServers, clock: Clock) -> None:
        self._servers = servers
        self._asking = Asking(servers, clock)

    async def list(self, server: str | None = None, *, fresh: bool = False) -> Listed[Resource]:
        """The resources of one server, or of all. `fresh`: asked for now, whatever is remembered."""
        return await self._asking.listed(self._servers.lists.resources, server, fresh=fresh)

    async def templates(self, server: str | None = None, *, fresh: bool = False) -> Listed[Template]:
        """Families of resources: addresses with gaps to fill."""
        return await self._asking.listed(self._servers.lists.templates, server, fresh=fresh)

    async def read(self, server: str, uri: str, *, timeout_seconds: float | None = None) -> ResourceContents:
        """What a resource holds. It need not be listed; `RemoteError` if its server does not have it."""
        name = self._asking.known(server)
        reply = await self._read(name, _checked(name, uri), timeout_seconds)
        return ResourceContents(server=name, uri=uri, contents=reply.contents, problems=reply.problems)

    @asynccontextmanager
    async def subscribed(self, server: str, uri: str) -> AsyncGenerator[Updates]:
        """Tells of changes of a resource, and of parts of it, for as long as the block lasts.

        Several changes of one resource come as one. After a time without connection the resource itself is
        told, for it may have changed.
        """
        name = self._asking.known(server)
        _checked(name, uri)
        await self._asking.session(name)
        watching = self._servers.watching_of(name)
        updates = await watching.add(uri)
        try:
            yield updates
        finally:
            await watching.remove(updates)

    async def complete(
        self,
        server: str,
        uri_template: str,
        variable: str,
        value: str = "",
        *,
        given: Mapping[str, str] | None = None,
    ) -> Completion:
        """What may be filled into a gap of a template; nothing where the server does not know."""
        name = self._asking.known(server)
        ref = {"type": "ref/resource", "uri": uri_template}
        return await complete(self._asking, name, ref, variable, value, given or {})

    async def _read(self, server: ServerName, uri: str, timeout_seconds: float | None) -> ReadReply:
        session, cache = await self._asking.session(server, timeout_seconds), self._servers.lists.reads
        kept = cache.get((server, uri), session)
        if kept is not None:
            return kept
        if not offers(self._servers.capabilities_of(server), "resources"):
            raise CallError(server, f"{server} offers no resources")
        ticket = cache.ticket((server, uri), session)
        try:
            reply = await self._asking.ask(
                server,
                "resources/read",
                {"uri": uri},
                read_contents,
                about=uri,
                timeout_seconds=timeout_seconds,
            )
        except RemoteError as error:
            if error.remote_code in NOT_FOUND:
                error.hint = f"{server} may have no such resource; list its resources to see what there is."
            raise
        if reply.ttl_seconds and not reply.problems:
            cache.put(ticket, reply, reply.ttl_seconds, cost=reply.size_bytes + len(uri) + KEEPING_BYTES)
        return reply


def _checked(server: ServerName, uri: str) -> str:
    if not is_usable(uri):
        raise InvalidArguments(server, "resources/read", ("the address is empty, too long or unreadable",))
    return uri
