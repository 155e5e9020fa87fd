"""Change notifications of one connection: of lists, and of resources with subscribers.

Subscribes in the way of the server's era, subscribes again after a reconnect, and delivers updates. Several
updates of one resource are delivered as one; above a limit, subscribers are notified that everything may have
changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from msgspec import Raw, Struct

from dragoman.connections.session import Session
from dragoman.connections.subscription_stream import SubscriptionStream, wanted_changes
from dragoman.errors import CallError, ConnectionLost, DragomanError
from dragoman.events import EventBus, ResourceUpdated
from dragoman.wire.codec import Unreadable, decode_as
from dragoman.wire.uris import WatchedUris, is_usable

UPDATED: Final = "notifications/resources/updated"
PENDING_LIMIT: Final = 1000
"""How many different resources one subscriber can have unread updates of."""
GATHERING_SECONDS: Final = 0.05
"""Updates are published as events of the host at most this often."""
UNSUBSCRIBE_TIMEOUT_SECONDS: Final = 5.0


class _Updated(Struct):
    uri: str


class Updates:
    """The changes of one resource, as `async for update in updates`. Ends when it is no longer watched."""

    def __init__(self, server: str, uri: str) -> None:
        self.uri = uri
        self._server = server
        self._pending: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._finished = False
        self.is_denied: Callable[[], bool] = lambda: False
        """Whether a rule denies by now that the resource is watched: no further change is reported then."""
        self.is_shown: Callable[[str], bool] = lambda uri: True
        """Whether the address of a changed part is reported; otherwise that of the resource is."""

    @property
    def about(self) -> dict[str, str]:
        """What is watched."""
        return {"server": self._server, "uri": self.uri}

    def put(self, uri: str) -> None:
        if len(self._pending) >= PENDING_LIMIT and uri not in self._pending:
            self._pending.clear()
            uri = self.uri
        self._pending[uri] = None
        self._wake.set()

    def finish(self) -> None:
        self._finished = True
        self._wake.set()

    def __aiter__(self) -> Updates:
        return self

    async def __anext__(self) -> ResourceUpdated:
        while not self._pending:
            if self._finished:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        if self.is_denied():
            raise StopAsyncIteration
        uri = next(iter(self._pending))
        del self._pending[uri]
        return ResourceUpdated(server=self._server, uri=uri if self.is_shown(uri) else self.uri)


class ResourceSubscriptions:
    """One server's. `missed`: called when changes of lists may have been missed."""

    def __init__(
        self,
        server: str,
        bus: EventBus,
        *,
        missed: Callable[[], None],
        logged: Callable[[str, str], None],
        timeout_seconds: Callable[[], float],
    ) -> None:
        self._server = server
        self._bus = bus
        self._missed_lists = missed
        self._logged = logged
        self._timeout_seconds = timeout_seconds
        self._watched: dict[str, list[Updates]] = {}
        self._uris = WatchedUris()
        """The keys of `_watched`."""
        self._session: Session | None = None
        self._capabilities: Mapping[str, Any] = {}
        self._listening: SubscriptionStream | None = None
        self._resuming: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._news: dict[str, None] = {}
        """Updates that are about to be published."""
        self._timer: asyncio.TimerHandle | None = None

    # Called by the connection.

    async def open(self, session: Session, capabilities: Mapping[str, Any]) -> None:
        """The server is connected. Returns when a server with `subscriptions/listen` has acknowledged it."""
        self._session, self._capabilities = session, capabilities
        if session.driver.era == "modern":
            self._listening = self._listen(
                session, filter(self._is_wanted, self._watched) if self._notifies_updates else ()
            )
            if self._listening is not None:
                await self._listening.begun()
            self._report_all()
        elif self._watched:
            # Not waited for: a server is connected when its tools are there.
            self._resuming = asyncio.create_task(self._resume(session))

    def close(self) -> None:
        """The link has ended."""
        self._session = None
        if self._listening is not None:
            self._listening.stop()
            self._listening = None
        if self._resuming is not None:
            self._resuming.cancel()

    def finish(self) -> None:
        """The connection will not be made again: ends all subscriptions."""
        for watchers in self._watched.values():
            for each in watchers:
                each.finish()

    def acknowledged(self, params: Raw) -> None:
        if self._listening is not None:
            self._listening.acknowledge(params)

    def updated(self, params: Raw) -> None:
        """Called when the server reports a changed resource; ignored without a subscriber."""
        try:
            uri = decode_as(_Updated, params).uri
        except Unreadable:
            return
        if is_usable(uri):
            self._report(uri, self._watchers_of(uri))

    # Called for subscribers.

    async def add(self, uri: str, check: Callable[[], None] | None = None) -> Updates:
        """Watches a resource; `CallError` if the server does not report its changes. What `check` raises
        immediately before the request is sent keeps it from being sent."""
        updates = Updates(self._server, uri)
        async with self._turn:
            if uri not in self._watched:
                await self._begin(uri, check)
            self._watched.setdefault(uri, []).append(updates)
            self._uris.add(uri)
        return updates

    async def remove(self, updates: Updates) -> None:
        updates.finish()
        watchers = self._watched[updates.uri]
        watchers.remove(updates)
        if watchers:
            return
        # Before any wait: a caller that is cancelled in it leaves no subscriber behind.
        del self._watched[updates.uri]
        self._uris.discard(updates.uri)
        async with self._turn:
            if updates.uri not in self._watched:
                await self._end(updates.uri)

    # The two eras.

    async def _begin(self, uri: str, check: Callable[[], None] | None) -> None:
        if check is not None:
            check()
        session = self._session
        if session is None:
            return  # it is asked for on the next link
        if not self._notifies_updates:
            raise CallError(
                self._server,
                f"{self._server} does not support resource subscriptions",
                hint="Read the resource again when it is needed.",
            )
        if session.driver.era == "modern":
            await self._reopen_stream(session, {*self._watched, uri})
            if not self._is_honoured(uri):
                await self._reopen_stream(session, self._watched)
                raise CallError(
                    self._server,
                    f"{self._server} does not accept a subscription to this resource",
                    hint="Read the resource again when it is needed.",
                )
        else:
            await self._ask(session, "resources/subscribe", uri, self._timeout_seconds(), check)

    async def _end(self, uri: str) -> None:
        session = self._session
        if session is None or session.lost_cause is not None or not self._notifies_updates:
            return
        try:
            if session.driver.era == "modern":
                await self._reopen_stream(session, self._watched)
            else:
                await self._ask(session, "resources/unsubscribe", uri, UNSUBSCRIBE_TIMEOUT_SECONDS)
        except DragomanError as error:
            self._logged("warning", f"a subscription may still be active: {error}")

    async def _ask(
        self,
        session: Session,
        method: str,
        uri: str,
        seconds: float,
        check: Callable[[], None] | None = None,
    ) -> None:
        await session.request(method, {"uri": uri}, timeout_seconds=seconds, before_send=check)

    async def _resume(self, session: Session) -> None:
        """Asks a new link for what was watched on the old one; it may have changed meanwhile."""
        for uri in list(self._watched):
            if not self._is_wanted(uri):
                continue
            try:
                await self._ask(session, "resources/subscribe", uri, self._timeout_seconds())
            except DragomanError as error:
                self._logged("warning", f"a resource subscription has ended: {error}")
            self._report(uri, self._watchers_of(uri))

    def _is_wanted(self, uri: str) -> bool:
        """Whether a subscriber is left to whom no rule denies it."""
        return not all(each.is_denied() for each in self._watched.get(uri, ()))

    def _listen(self, session: Session, uris: Iterable[str]) -> SubscriptionStream | None:
        wanted: dict[str, Any] = dict(wanted_changes(self._capabilities))
        if watched := sorted(uris):
            wanted["resourceSubscriptions"] = watched
        return SubscriptionStream(session, wanted, self._missed) if wanted else None

    async def _reopen_stream(self, session: Session, uris: Iterable[str]) -> None:
        """The new stream is open before the old one ends, so that nothing is missed between them."""
        before, after = self._listening, self._listen(session, uris)
        self._listening = after
        try:
            if after is not None:
                await after.begun()
                self._check_link(session)
                if after.refusal is not None:
                    raise after.refusal
        except BaseException:
            if after is not None:
                after.stop()
            if self._session is session:
                self._listening = before
            elif before is not None:
                before.stop()
            raise
        if before is not None:
            before.stop()

    def _check_link(self, session: Session) -> None:
        """While the server was waited for, the link may have been lost, and replaced by another."""
        if self._session is not session:
            cause = session.lost_cause or "it was reconnected"
            raise ConnectionLost(self._server, cause, may_have_run=True)

    def _is_honoured(self, uri: str) -> bool:
        honoured = self._listening.honoured if self._listening is not None else None
        if honoured is None:
            return True  # it has not acknowledged yet
        uris: Any = honoured.get("resourceSubscriptions")
        return isinstance(uris, list) and uri in uris

    @property
    def _notifies_updates(self) -> bool:
        resources: Any = self._capabilities.get("resources")
        return isinstance(resources, dict) and cast("dict[str, Any]", resources).get("subscribe") is True

    # Delivery to subscribers.

    def _watchers_of(self, uri: str) -> list[Updates]:
        """The subscribers of this resource, and of resources that it is a part of."""
        return [each for found in self._uris.found_for(uri) for each in self._watched[found]]

    def _missed(self) -> None:
        self._missed_lists()
        self._report_all()

    def _report_all(self) -> None:
        for uri, watchers in self._watched.items():
            self._report(uri, watchers)

    def _report(self, uri: str, watchers: Iterable[Updates]) -> None:
        is_known = False
        for each in watchers:
            each.put(uri)
            is_known = True
        if not is_known or not self._bus.has_listeners:
            return
        if len(self._news) >= PENDING_LIMIT:
            self._news = dict.fromkeys(self._watched)
        self._news[uri] = None
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(GATHERING_SECONDS, self._publish)

    def _publish(self) -> None:
        self._timer, news, self._news = None, self._news, {}
        for uri in news:
            self._bus.publish(ResourceUpdated(server=self._server, uri=uri))
