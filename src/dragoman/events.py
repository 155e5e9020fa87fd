"""Events: what happened, as frozen values, and the bus that delivers them.

The code that causes something publishes the event, and any number of listeners read it at their own pace. A
listener that is too slow loses the oldest events and learns how many (`EventsDropped`). Programs compute
metrics from them. Hook events are in `hooks/events.py`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakSet

from msgspec import Struct

BACKLOG: Final = 10_000
"""Events kept for a listener that does not read."""


class Event(Struct, frozen=True, kw_only=True):
    """Base of every event."""


class ServerEvent(Event, frozen=True, kw_only=True):
    """Base of events about one server."""

    server: str


class ServerStateChanged(ServerEvent, frozen=True, kw_only=True):
    """A server's state changed. Carries the reason as text."""

    status: str
    phase: str | None = None
    reason: str | None = None
    attempt: int = 0


class ServerConnected(ServerEvent, frozen=True, kw_only=True):
    """A server can be used."""

    protocol_version: str


class ServerFailed(ServerEvent, frozen=True, kw_only=True):
    """A server could not be connected."""

    reason: str
    hint: str | None = None


class ServerLost(ServerEvent, frozen=True, kw_only=True):
    """The connection of a server ended, and the host did not close it."""

    reason: str


class ServerLogged(ServerEvent, frozen=True, kw_only=True):
    """A message or an action of a server for its log."""

    level: str
    text: str
    logger: str = ""
    """The logger: the server's own name for the part of it that sent the message."""
    is_message: bool = False
    """Whether it is a log message of the server; otherwise the host noticed it."""


class ToolsChanged(ServerEvent, frozen=True, kw_only=True):
    """A server's list of tools was read."""

    tool_count: int
    problems: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Tools, by the server's own names, whose definition has changed."""


class ResourcesChanged(ServerEvent, frozen=True, kw_only=True):
    """A server's lists of resources and templates were read."""

    resource_count: int
    template_count: int
    problems: tuple[str, ...] = ()


class PromptsChanged(ServerEvent, frozen=True, kw_only=True):
    """A server's list of prompts was read."""

    prompt_count: int
    problems: tuple[str, ...] = ()


class ResourceUpdated(ServerEvent, frozen=True, kw_only=True):
    """A subscribed resource has changed, or may have changed while there was no connection."""

    uri: str
    """The URI of the subscribed resource, or of a part of it, as its server spells it."""


class CallEvent(ServerEvent, frozen=True, kw_only=True):
    """Base of events about one call."""

    tool: str
    call_id: str = ""
    """The id of the call, the same in all its events and as `tool_use_id` of hooks: the id that the caller
    passed (`Host.call(call_id=…)`), or one that the host generates."""


class CallStarted(CallEvent, frozen=True, kw_only=True):
    """A call was allowed and is being handed over."""


class CallProgressed(CallEvent, frozen=True, kw_only=True):
    """A server reported the progress of a call."""

    progress: float
    total: float | None = None
    message: str | None = None

    def as_mcp_progress(self) -> dict[str, Any]:
        """The progress of a tool use, in the form that some programs expect: `{"toolUseID": …, "data":
        {"type": "mcp_progress", "progress": …, "total": …, "message": …}}`. Values that the server did not
        send are left out."""
        params = {"progress": self.progress, "total": self.total, "message": self.message}
        given = {name: value for name, value in params.items() if value is not None}
        return {"toolUseID": self.call_id, "data": {"type": "mcp_progress", **given}}


class CallFinished(CallEvent, frozen=True, kw_only=True):
    """A call ended, with or without success."""

    duration_seconds: float
    is_error: bool
    error_code: str | None = None


class PermissionAsked(CallEvent, frozen=True, kw_only=True):
    """A person was asked and answered."""

    allowed: bool
    reason: str


class PermissionModeChanged(Event, frozen=True, kw_only=True):
    """The permission mode of a running host changed: a program set it, or a file was changed."""

    mode: str
    before: str


class HookReported(Event, frozen=True, kw_only=True):
    """A hook failed, or has a message for the person."""

    event: str
    hook: str
    text: str
    is_failure: bool


class ConfigurationChanged(Event, frozen=True, kw_only=True):
    """Configuration was read again; the servers named were started, ended, or replaced."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    rules_changed: bool = False
    """Whether permission rules changed, which may change the tools that a model is shown."""
    problems: tuple[str, ...] = ()


class EventsDropped(Event, frozen=True, kw_only=True):
    """This listener fell behind and lost its oldest events."""

    count: int


class EventBus:
    """Hands events to listeners. Publishing never waits and costs next to nothing without listeners."""

    def __init__(self) -> None:
        # Weak references: a listener that is dropped need not be closed.
        self._listeners: WeakSet[EventStream] = WeakSet()
        self._closed = False
        self.cover: Callable[[Event], Event] | None = None
        """Removes secrets from an event."""
        self.has_listeners = False
        """Whether there are listeners; checked before an event is made. May stay true for a while after the
        last listener was dropped."""
        self.has_call_listeners = False
        """Whether there are listeners for events about calls; checked before such an event is made."""

    def publish(self, event: Event) -> None:
        self._update()
        listeners = [each for each in self._listeners if isinstance(event, each.kinds)]
        if self.cover is not None and listeners:
            event = self.cover(event)
        for listener in listeners:
            listener.put(event)

    def listen(self, *kinds: type[Event]) -> EventStream:
        """Events of these classes, or all, from this moment on; the iteration ends when the bus is closed."""
        listener = EventStream(self, kinds or (Event,))
        if self._closed:
            listener.finish()
        else:
            self._listeners.add(listener)
            self._update()
        return listener

    def _update(self) -> None:
        self.has_listeners = len(self._listeners) > 0
        self.has_call_listeners = any(each.takes_calls for each in self._listeners)

    def close(self) -> None:
        self._closed = True
        for listener in self._listeners:
            listener.finish()
        self._listeners.clear()
        self._update()

    def forget(self, listener: EventStream) -> None:
        self._listeners.discard(listener)
        self._update()


class EventStream:
    """Events as they come, until the bus is closed or `aclose` is called."""

    def __init__(self, bus: EventBus, kinds: tuple[type[Event], ...]) -> None:
        self.kinds = kinds
        self.takes_calls = any(issubclass(CallEvent, kind) or issubclass(kind, CallEvent) for kind in kinds)
        self._bus = bus
        self._waiting: deque[Event] = deque()
        self._dropped = 0
        self._wake = asyncio.Event()
        self._finished = False

    def put(self, event: Event) -> None:
        if len(self._waiting) >= BACKLOG:
            self._waiting.popleft()
            self._dropped += 1
        self._waiting.append(event)
        self._wake.set()

    def finish(self) -> None:
        self._finished = True
        self._wake.set()

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        while True:
            if self._dropped:
                count, self._dropped = self._dropped, 0
                return EventsDropped(count=count)
            if self._waiting:
                return self._waiting.popleft()
            if self._finished:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()

    async def aclose(self) -> None:
        self._bus.forget(self)
        self.finish()
