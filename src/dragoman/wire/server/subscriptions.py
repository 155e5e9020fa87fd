"""The changes that one client subscribed to, in both eras, and the notifications of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from msgspec import Struct

from dragoman.protocol import META_SUBSCRIPTION_ID
from dragoman.wire.server import modern
from dragoman.wire.server.request import ClientRequest
from dragoman.wire.server.service import Json, ListKind, RequestError, Result, Service
from dragoman.wire.uris import is_part_of

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
        self._streams: list[_Stream] = []
        """Those of modern clients."""

    @property
    def subscribed(self) -> tuple[str, ...]:
        return tuple(sorted(self._subscribed))

    async def set_subscribed(self, request: ClientRequest, uris: Collection[str]) -> None:
        """Makes the subscriptions of a legacy client those to `uris`; one that is refused is left out."""
        for uri in set(self._subscribed).difference(uris):
            await self.unsubscribe(request.derive(UNSUBSCRIBE, {"uri": uri}))
        for uri in sorted(set(uris).difference(self._subscribed)):
            with contextlib.suppress(RequestError):
                await self.subscribe(request.derive(SUBSCRIBE, {"uri": uri}))

    def list_changed(self, kind: ListKind) -> None:
        method = f"notifications/{kind}/list_changed"
        if kind in self._service.list_changes:
            self._notify(method, None)
        for stream in self._streams:
            if stream.honoured.get(f"{kind}ListChanged"):
                stream.notify(method, {})

    def resource_updated(self, uri: str) -> None:
        method, params = "notifications/resources/updated", {"uri": uri}
        if any(is_part_of(uri, whole) for whole in self._subscribed):
            self._notify(method, params)
        for stream in self._streams:
            if any(is_part_of(uri, whole) for whole in stream.honoured.get("resourceSubscriptions", ())):
                stream.notify(method, params)

    def end_streams(self) -> None:
        for stream in self._streams:
            stream.ended.set()

    async def close(self) -> None:
        subscribed, self._subscribed = self._subscribed, {}
        for uri, request in subscribed.items():
            await self._end(request, uri)

    # Handlers of the connection.

    async def subscribe(self, request: ClientRequest) -> Result:
        uri = request.decode(_Resource).uri
        if uri in self._subscribed:
            return {}
        self._subscribed[uri] = request
        try:
            return await self._service.handlers[SUBSCRIBE](request)
        except BaseException:
            self._subscribed.pop(uri, None)
            raise

    async def unsubscribe(self, request: ClientRequest) -> Result:
        uri = request.decode(_Resource).uri
        if self._subscribed.pop(uri, None) is not None:
            await self._end(request, uri)
        return {}

    async def listen(self, request: ClientRequest) -> Json:
        honoured = modern.honoured(self._service, request.decode(modern.ListenParams).notifications)
        stream = _Stream(request, honoured, asyncio.Event())
        accepted: list[str] = []
        try:
            for uri in honoured.pop("resourceSubscriptions", ()):
                if await self._accepts(request, uri):
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
                await self._end(request, uri)
        return {"_meta": {META_SUBSCRIPTION_ID: request.id}}

    async def _accepts(self, request: ClientRequest, uri: str) -> bool:
        try:
            await self._service.handlers[SUBSCRIBE](request.derive(SUBSCRIBE, {"uri": uri}))
        except RequestError:
            return False
        return True

    async def _end(self, request: ClientRequest, uri: str) -> None:
        handler = self._service.handlers.get(UNSUBSCRIBE)
        if handler is not None:
            await self._service.run(handler, request.derive(UNSUBSCRIBE, {"uri": uri}))
