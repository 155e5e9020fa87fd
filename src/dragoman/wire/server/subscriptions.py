"""The changes that one client subscribed to, in both eras, and the notifications of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, Final

from msgspec import Struct

from dragoman.protocol import META_SUBSCRIPTION_ID
from dragoman.wire.server import modern
from dragoman.wire.server.request import ClientRequest
from dragoman.wire.server.service import Json, ListKind, RequestError, Result, Service
from dragoman.wire.uris import WatchedUris

SUBSCRIBE: Final = "resources/subscribe"
UNSUBSCRIBE: Final = "resources/unsubscribe"


class _Resource(Struct):
    uri: str


class _Stream(Struct, eq=False):
    """One `subscriptions/listen` that has been acknowledged."""

    request: ClientRequest
    honoured: Json
    ended: asyncio.Event

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        assert self.request.id is not None
        self.request.notify(method, modern.in_subscription(self.request.id, params))


class Subscriptions:
    def __init__(self, service: Service, notify: Callable[[str, Mapping[str, Any] | None], None]) -> None:
        """`notify`: sends a notification to a legacy client."""
        self._service = service
        self._notify = notify
        self._subscribed: dict[str, ClientRequest] = {}
        """URI → the `resources/subscribe` of a legacy client."""
        self._users: dict[str, set[object]] = {}
        """URI → the members of `_subscribed` and `_streams` that want its changes. A client may open a new
        stream before it ends the old one, so the handlers are called only when the last one ends."""
        self._uris = WatchedUris()
        """The keys of `_users`."""
        self._streams: list[_Stream] = []
        """The streams of modern clients."""

    @property
    def subscribed(self) -> tuple[str, ...]:
        return tuple(sorted(self._subscribed))

    def set_subscribed(
        self, request: ClientRequest, uris: Collection[str]
    ) -> list[Coroutine[Any, Any, None]]:
        """Sets the subscriptions of a legacy client to `uris`. Returns the handlers to run for that. A
        subscription that is refused is left out."""
        ended = {uri: self._subscribed.pop(uri) for uri in self._subscribed.keys() - set(uris)}
        added = {uri: request.derive(SUBSCRIBE, {"uri": uri}) for uri in {*uris} - self._subscribed.keys()}
        self._subscribed |= added
        return [
            *(self._end(user, user, uri) for uri, user in ended.items()),
            *(self._service.run(self._resubscribe, each) for each in added.values()),
        ]

    def list_changed(self, kind: ListKind) -> None:
        method = f"notifications/{kind}/list_changed"
        if kind in self._service.list_changes:
            self._notify(method, None)
        for stream in self._streams:
            if stream.honoured.get(f"{kind}ListChanged"):
                stream.notify(method, {})

    def resource_updated(self, uri: str) -> None:
        method, params = "notifications/resources/updated", {"uri": uri}
        found = self._uris.found_for(uri)
        if any(each in self._subscribed for each in found):
            self._notify(method, params)
        users = {user for each in found for user in self._users[each]}
        for stream in self._streams:
            if stream in users:
                stream.notify(method, params)

    def ended(self, uri: str) -> None:
        """Forgets that the client has subscribed to a resource of which the service reports no changes any
        more, so that a new request for it has an effect."""
        self._subscribed.pop(uri, None)
        self._users.pop(uri, None)
        self._uris.discard(uri)

    def end_streams(self) -> None:
        for stream in self._streams:
            stream.ended.set()

    async def close(self) -> None:
        subscribed, self._subscribed = self._subscribed, {}
        for uri, request in subscribed.items():
            await self._end(request, request, uri)

    # Handlers of the connection.

    async def subscribe(self, request: ClientRequest) -> Result:
        uri = request.decode(_Resource).uri
        if uri in self._subscribed:
            return {}
        self._subscribed[uri] = request
        return await self._begin_subscribed(request, uri)

    async def _resubscribe(self, request: ClientRequest) -> Result:
        with contextlib.suppress(RequestError):
            return await self._begin_subscribed(request, request.decode(_Resource).uri)
        return {}

    async def _begin_subscribed(self, request: ClientRequest, uri: str) -> Result:
        try:
            return await self._begin(request, request, uri)
        except BaseException:
            if self._subscribed.get(uri) is request:
                del self._subscribed[uri]
            raise

    async def unsubscribe(self, request: ClientRequest) -> Result:
        uri = request.decode(_Resource).uri
        if (user := self._subscribed.pop(uri, None)) is not None:
            await self._end(user, request, uri)
        return {}

    async def listen(self, request: ClientRequest) -> Json:
        honoured = modern.honoured(self._service, request.decode(modern.ListenParams).notifications)
        stream = _Stream(request, honoured, asyncio.Event())
        accepted: list[str] = []
        try:
            for uri in honoured.pop("resourceSubscriptions", ()):
                if await self._accepts(stream, uri):
                    accepted.append(uri)
            if accepted:
                honoured["resourceSubscriptions"] = accepted
            # The client must be sent nothing else of this subscription before it.
            stream.notify("notifications/subscriptions/acknowledged", {"notifications": honoured})
            self._streams.append(stream)
            await stream.ended.wait()
        finally:
            self._streams = [each for each in self._streams if each is not stream]
            for uri in accepted:
                await self._end(stream, request, uri)
        return {"_meta": {META_SUBSCRIPTION_ID: request.id}}

    async def _accepts(self, stream: _Stream, uri: str) -> bool:
        try:
            await self._begin(stream, stream.request, uri)
        except RequestError:
            return False
        return True

    async def _begin(self, user: object, request: ClientRequest, uri: str) -> Result:
        self._users.setdefault(uri, set()).add(user)
        self._uris.add(uri)
        try:
            return await self._service.handlers[SUBSCRIBE](request.derive(SUBSCRIBE, {"uri": uri}))
        except BaseException:
            self._was_last(user, uri)
            raise

    async def _end(self, user: object, request: ClientRequest, uri: str) -> None:
        handler = self._service.handlers.get(UNSUBSCRIBE)
        if self._was_last(user, uri) and handler is not None:
            await self._service.run(handler, request.derive(UNSUBSCRIBE, {"uri": uri}))

    def _was_last(self, user: object, uri: str) -> bool:
        """Removes this subscriber of the URI; returns whether it was the last one."""
        users = self._users.get(uri, set())
        users.discard(user)
        if not users:
            self._users.pop(uri, None)
            self._uris.discard(uri)
        return not users
