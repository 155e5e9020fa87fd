"""Resources of all servers: listed, read, subscribed to.

`Resources` is what programs use: every request is judged (`requests.py`). `ResourceReader` sends requests
that were judged already, as those of a model's built-in tools are. What is read comes back as it was sent,
without secrets of the server's entry; `content/media.py` makes of it what a model may see.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from msgspec import Raw, Struct, structs

from dragoman.calls.completion import complete
from dragoman.calls.input_rounds import LARGE_BYTES, in_thread_if_large
from dragoman.calls.requests import CONTENTS, LIST_RESOURCES, NOTHING_SHOWN, READ_RESOURCE, Requests
from dragoman.calls.sending import Listed, Sender
from dragoman.catalog.prompts import Completion
from dragoman.catalog.resources import (
    ReadReply,
    Resource,
    ResourceContents,
    ResourceTemplate,
    read_contents,
)
from dragoman.connections.resource_subscriptions import ResourceSubscriptions, Updates
from dragoman.content.redact import BASE64_FIELDS, Redactor
from dragoman.errors import CallError, InvalidArguments, RemoteError
from dragoman.interaction import Caller
from dragoman.names import ServerName
from dragoman.protocol import INVALID_PARAMS, RESOURCE_NOT_FOUND
from dragoman.servers.lists import ListReader
from dragoman.servers.registry import ServerRegistry
from dragoman.servers.server import Server
from dragoman.servers.shared_reads import SharedReads
from dragoman.wire.uris import is_usable

T = TypeVar("T", bound=Struct)

NOT_FOUND: Final = (INVALID_PARAMS, RESOURCE_NOT_FOUND)
"""The error codes for an unknown resource: of the modern era, and of the legacy era."""


PROBLEM_LIMIT: Final = 20


class ResourceReader:
    """Sends requests that have been judged."""

    def __init__(self, servers: ServerRegistry) -> None:
        self.sender = Sender(servers)
        self.shared: SharedReads | None = None
        """The cache that several hosts share."""

    async def list(self, server: str) -> Listed[Resource]:
        known = self.sender.known(server)
        return await self.sender.list_of(known.resources, known, fresh=False)

    async def templates(self, server: str) -> Listed[ResourceTemplate]:
        known = self.sender.known(server)
        return await self.sender.list_of(known.templates, known, fresh=False)

    async def read(self, server: str, uri: str, timeout_seconds: float | None = None) -> ResourceContents:
        known = self.sender.known(server)
        redact = known.redactor
        reply = await self._read(known, _checked(known.name, uri), timeout_seconds)
        found = ResourceContents(server=known.name, uri=uri, contents=reply.contents, problems=reply.problems)
        if not redact:
            return found
        if reply.size_bytes > LARGE_BYTES:
            return await asyncio.to_thread(_covered, found, redact)
        return _covered(found, redact)

    async def subscribe(self, server: str, uri: str) -> tuple[ResourceSubscriptions, Updates]:
        known = self.sender.known(server)
        _checked(known.name, uri)
        await self.sender.session(known)
        return known.subscriptions, await known.subscriptions.add(uri, lambda: self.sender.check(known))

    async def _read(self, server: Server, uri: str, timeout_seconds: float | None) -> ReadReply:
        await self.sender.session(server, timeout_seconds)
        kept = server.reads.get(uri)
        if kept is not None:
            return kept
        if not server.offers("resources"):
            raise CallError(
                server.name,
                f"{server.name} offers no resources",
                hint="List the resources of all servers to see which offer any.",
            )
        version, shared_version = server.reads.version, None
        if self.shared is not None:
            kept, shared_version = await self.shared.get(server, uri)
            if kept is not None:
                server.reads.put(uri, kept, version)
                return kept
        kinds: list[str] = []

        def read(raw: Raw) -> tuple[str, ReadReply]:
            kind, reply = read_contents(raw)
            kinds.append(kind)
            return kind, reply

        try:
            reply = await self.sender.send(
                server,
                "resources/read",
                {"uri": uri},
                in_thread_if_large(read),
                about=uri,
                timeout_seconds=timeout_seconds,
            )
        except RemoteError as error:
            if error.remote_code in NOT_FOUND:
                error.hint = (
                    f"{server.name} may have no such resource; list its resources to see what there is."
                )
            raise
        # What depends on a person's answers is not kept: the specification forbids it.
        if not reply.problems and kinds == ["complete"]:
            server.reads.put(uri, reply, version)
            if self.shared is not None and shared_version is not None:
                await self.shared.put(server, uri, reply, shared_version)
        return reply


class Resources:
    """What `Host.resources` is. `PermissionRefused` where a rule or a hook denies a request."""

    def __init__(self, reader: ResourceReader, requests: Requests) -> None:
        self._reader = reader
        self._requests = requests
        self._subscriptions: dict[Updates, ResourceSubscriptions] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def for_caller(self, caller: Caller) -> Resources:
        """The same resources, requested on behalf of another caller."""
        view = Resources(self._reader, self._requests.for_caller(caller))
        view._subscriptions = self._subscriptions
        return view

    def cache_counts(self) -> Mapping[str, Mapping[str, int]]:
        """By server, how often what was read before was used (`hit`), or why not (`miss`, `expired`), and how
        much was dropped because of a change (`invalidated`)."""
        servers = self._reader.sender.servers
        return {name: dict(server.reads.counts) for name, server in servers.items()}

    def shared_cache_counts(self) -> Mapping[str, Mapping[str, int]]:
        """The same for what several hosts share."""
        servers = self._reader.sender.servers
        return {name: dict(server.reads.shared_counts) for name, server in servers.items()}

    async def list(self, server: str | None = None, *, fresh: bool = False) -> Listed[Resource]:
        """The resources of one server, or of all. `fresh`: requested now, not taken from memory."""
        return await self._listed(lambda each: each.resources, server, fresh)

    async def templates(self, server: str | None = None, *, fresh: bool = False) -> Listed[ResourceTemplate]:
        """Resource templates: URI templates with variables."""
        return await self._listed(lambda each: each.templates, server, fresh)

    async def _listed(
        self, reader_of: Callable[[Server], ListReader[T]], server: str | None, fresh: bool
    ) -> Listed[T]:
        return await self._requests.listed(
            LIST_RESOURCES, self._reader.sender, reader_of, server, fresh=fresh
        )

    async def read(
        self, server: str, uri: str, *, timeout_seconds: float | None = None, call_id: str | None = None
    ) -> ResourceContents:
        """The contents of a resource. It need not be listed; `RemoteError` if its server does not have it.
        `call_id`: identifies the request in hooks and questions."""
        return await self._requests.make(
            READ_RESOURCE,
            self._about(server, uri),
            lambda given: self._reader.read(given["server"], given["uri"], timeout_seconds),
            CONTENTS,
            call_id,
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
        """Reports changes of a resource, and of parts of it, for as long as the block lasts.

        Several changes of one resource come as one. After a time without connection the resource itself is
        reported, for it may have changed. Ends when a rule comes to deny reading the resource.
        """
        subscriptions, updates = await self._requests.make(
            READ_RESOURCE,
            self._about(server, uri),
            lambda given: self._reader.subscribe(given["server"], given["uri"]),
            NOTHING_SHOWN,
        )
        self._subscriptions[updates] = subscriptions
        updates.is_denied = lambda: self._requests.denies(READ_RESOURCE, updates.about)
        redact = self._reader.sender.known(server).redactor
        updates.is_shown = lambda part: redact.text(part) == part
        if updates.is_denied():  # by a rule that came after the request
            self.end_denied()
        try:
            yield updates
        finally:
            if self._subscriptions.pop(updates, None) is not None:
                await subscriptions.remove(updates)

    def end_denied(self) -> None:
        """Ends the subscriptions that rules, which have changed, deny. Servers are notified in the
        background: one that does not answer must not delay the other effects of changed rules."""
        for each in list(self._subscriptions):
            if self._requests.denies(READ_RESOURCE, each.about):
                each.finish()
                ending = asyncio.create_task(self._subscriptions.pop(each).remove(each))
                self._ending.add(ending)
                ending.add_done_callback(self._ending.discard)

    async def complete(
        self,
        server: str,
        uri_template: str,
        variable: str,
        value: str = "",
        *,
        given: Mapping[str, str] | None = None,
    ) -> Completion:
        """Suggested values for a variable of a template; nothing where the server does not know."""
        sender = self._reader.sender
        subject = {"server": sender.known(server).name, "uri": uri_template}
        return await complete(self._requests, sender, subject, variable, value, given or {})

    def _about(self, server: str, uri: str) -> dict[str, Any]:
        name = self._reader.sender.known(server).name
        return {"server": name, "uri": _checked(name, uri)}


def _covered(found: ResourceContents, redact: Redactor) -> ResourceContents:
    """Without secrets, also those that are spread over several parts."""
    texts = iter(redact.texts([part.text for part in found.contents if part.text is not None]))
    parts = tuple(
        redact.struct(part if part.text is None else structs.replace(part, text=next(texts)), BASE64_FIELDS)
        for part in found.contents
    )
    return structs.replace(found, contents=parts, problems=tuple(map(redact.text, found.problems)))


def _checked(server: ServerName, uri: str) -> str:
    if not is_usable(uri):
        raise InvalidArguments(server, "resources/read", ("the URI is empty, too long or not readable",))
    return uri
