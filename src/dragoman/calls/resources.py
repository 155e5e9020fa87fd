"""Resources of all servers: listed, read, subscribed to.

`Resources` is what programs use: every request is judged (`requests.py`). `ResourceReader` sends requests
that were judged already, as those of a model's built-in tools are. What is read comes back as it was sent,
without secrets of the server's entry; `content/media.py` makes of it what a model may see.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct, structs

from dragoman.calls.asking import Asking, Listed, Servers
from dragoman.calls.completion import complete
from dragoman.calls.requests import CONTENTS, LIST_RESOURCES, NOTHING_SHOWN, READ_RESOURCE, Requests
from dragoman.catalog.lists import ListsOf, offers
from dragoman.catalog.prompts import Completion
from dragoman.catalog.resources import (
    ReadReply,
    Resource,
    ResourceContents,
    Template,
    read_contents,
)
from dragoman.clock import Clock
from dragoman.connections.resource_subscriptions import Updates, Watching
from dragoman.content.redact import NOT_LOOKED_INTO, Redactor
from dragoman.errors import CallError, InvalidArguments, RemoteError
from dragoman.names import ServerName
from dragoman.protocol import INVALID_PARAMS, RESOURCE_NOT_FOUND
from dragoman.wire.uris import is_usable

T = TypeVar("T", bound=Struct)

NOT_FOUND: Final = (INVALID_PARAMS, RESOURCE_NOT_FOUND)
"""How servers say that they have no such resource: in the modern era, and before."""


PROBLEM_LIMIT: Final = 20
KEEPING_BYTES: Final = 1024
"""What keeping a resource takes besides what it holds: very many small ones are not free."""


class WatchedServers(Servers, Protocol):
    """The same, with the way to hear of changes."""

    def watching_of(self, server: ServerName) -> Watching: ...


class ResourceReader:
    """Sends requests that have been judged."""

    def __init__(self, servers: WatchedServers, clock: Clock) -> None:
        self.servers = servers
        self.asking = Asking(servers, clock)

    async def list(self, server: str) -> Listed[Resource]:
        return await self.asking.list_of(self.servers.lists.resources, self.asking.known(server), fresh=False)

    async def templates(self, server: str) -> Listed[Template]:
        return await self.asking.list_of(self.servers.lists.templates, self.asking.known(server), fresh=False)

    async def read(self, server: str, uri: str, timeout_seconds: float | None = None) -> ResourceContents:
        name = self.asking.known(server)
        redact = self.servers.redactor_of(name)
        reply = await self._read(name, _checked(name, uri), timeout_seconds)
        found = ResourceContents(server=name, uri=uri, contents=reply.contents, problems=reply.problems)
        return _covered(found, redact) if redact else found

    async def subscribe(self, server: str, uri: str) -> tuple[Watching, Updates]:
        name = self.asking.known(server)
        _checked(name, uri)
        await self.asking.session(name)
        watching = self.servers.watching_of(name)
        return watching, await watching.add(uri)

    async def _read(self, server: ServerName, uri: str, timeout_seconds: float | None) -> ReadReply:
        session, cache = await self.asking.session(server, timeout_seconds), self.servers.lists.reads
        kept = cache.get((server, uri), session)
        if kept is not None:
            return kept
        if not offers(self.servers.capabilities_of(server), "resources"):
            raise CallError(server, f"{server} offers no resources")
        ticket = cache.ticket((server, uri), session)
        try:
            reply = await self.asking.ask(
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


class Resources:
    """What `Host.resources` is. `PermissionRefused` where a rule or a hook denies a request."""

    def __init__(self, reader: ResourceReader, requests: Requests) -> None:
        self._reader = reader
        self._requests = requests
        self._subscriptions: dict[Updates, Watching] = {}

    async def list(self, server: str | None = None, *, fresh: bool = False) -> Listed[Resource]:
        """The resources of one server, or of all. `fresh`: requested now, not taken from memory."""
        return await self._listed(self._reader.servers.lists.resources, server, fresh)

    async def templates(self, server: str | None = None, *, fresh: bool = False) -> Listed[Template]:
        """Resource templates: addresses with gaps to fill."""
        return await self._listed(self._reader.servers.lists.templates, server, fresh)

    async def _listed(self, lists: ListsOf[T], server: str | None, fresh: bool) -> Listed[T]:
        return await self._requests.listed(LIST_RESOURCES, self._reader.asking, lists, server, fresh=fresh)

    async def read(self, server: str, uri: str, *, timeout_seconds: float | None = None) -> ResourceContents:
        """What a resource holds. It need not be listed; `RemoteError` if its server does not have it."""
        return await self._requests.make(
            READ_RESOURCE,
            self._about(server, uri),
            lambda given: self._reader.read(given["server"], given["uri"], timeout_seconds),
            CONTENTS,
        )

    async def server_of(self, uri: str) -> ServerName:
        """The one connected server that lists this address, or else the one with a matching template.

        `InvalidArguments` if there is none, or more than one; it names them. A server that may not be listed,
        or of which a rule denies reading this address, is not found and not named.
        """
        listed, templates = await asyncio.gather(self.list(), self.templates())

        def readable(servers: Iterable[ServerName]) -> list[ServerName]:
            return [
                server
                for server in sorted(set(servers))
                if not self._requests.denies(READ_RESOURCE, {"server": server, "uri": uri})
            ]

        found = readable(each.server for each in listed if each.uri == uri)
        found = found or readable(each.server for each in templates if each.matches(uri))
        if len(found) == 1:
            return found[0]
        if found:
            problems = [f"several servers have this resource, so name one of them: {', '.join(found)}"]
        else:
            problems = ["no connected server lists this resource or has a template for it, so name a server"]
            problems += dict.fromkeys((*listed.problems, *templates.problems))
        raise InvalidArguments("", READ_RESOURCE.name, tuple(problems[:PROBLEM_LIMIT]))

    @asynccontextmanager
    async def subscribed(self, server: str, uri: str) -> AsyncGenerator[Updates]:
        """Tells of changes of a resource, and of parts of it, for as long as the block lasts.

        Several changes of one resource come as one. After a time without connection the resource itself is
        told, for it may have changed. Ends when a rule comes to deny reading the resource.
        """
        watching, updates = await self._requests.make(
            READ_RESOURCE,
            self._about(server, uri),
            lambda given: self._reader.subscribe(given["server"], given["uri"]),
            NOTHING_SHOWN,
        )
        self._subscriptions[updates] = watching
        try:
            yield updates
        finally:
            if self._subscriptions.pop(updates, None) is not None:
                await watching.remove(updates)

    async def end_denied(self) -> None:
        """Ends the subscriptions that rules, which have changed, deny."""
        denied = [each for each in self._subscriptions if self._requests.denies(READ_RESOURCE, each.about)]
        ended = [(self._subscriptions.pop(each), each) for each in denied]
        await asyncio.gather(*(watching.remove(updates) for watching, updates in ended))

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
        asking = self._reader.asking
        subject = {"server": asking.known(server), "uri": uri_template}
        return await complete(self._requests, asking, subject, variable, value, given or {})

    def _about(self, server: str, uri: str) -> dict[str, Any]:
        name = self._reader.asking.known(server)
        return {"server": name, "uri": _checked(name, uri)}


def _covered(found: ResourceContents, redact: Redactor) -> ResourceContents:
    """Without secrets, also those that are spread over several parts."""
    texts = iter(redact.texts([part.text for part in found.contents if part.text is not None]))
    parts = tuple(
        redact.struct(part if part.text is None else structs.replace(part, text=next(texts)), NOT_LOOKED_INTO)
        for part in found.contents
    )
    return structs.replace(found, contents=parts, problems=tuple(map(redact.text, found.problems)))


def _checked(server: ServerName, uri: str) -> str:
    if not is_usable(uri):
        raise InvalidArguments(server, "resources/read", ("the URI is empty, too long or not readable",))
    return uri
