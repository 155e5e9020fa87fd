"""Keys are handled one after another, however quickly they are typed.

Textual gives each key to the widget that has the focus when the key arrives, although keys before it, which
may move the focus or change a value, are still on their way through the widgets. Of keys that arrive in one
piece (a quick person, a slow machine, a script) some would go to the wrong field, or a form would be sent
without the last choice.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Any, Final, TypeVar

from textual import events
from textual.app import App
from textual.message_pump import MessagePump
from textual.widgets import Input, TextArea

WAIT_SECONDS: Final = 1.0
"""A widget that does not come to an end with a key delays the next one no longer."""
KEY_LIMIT: Final = 100_000
"""Keys that wait; more are dropped."""

T = TypeVar("T")


class OrderedKeys(App[T]):
    """An application that gives a key to its widgets when they are done with the key before it."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: deque[events.Key | events.Paste] = deque(maxlen=KEY_LIMIT)
        self._handling: asyncio.Task[None] | None = None

    async def on_event(self, event: events.Event) -> None:
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
            return
        self._keys.append(event)
        if self._handling is None or self._handling.done():
            self._handling = asyncio.create_task(self._handle_keys(), name="dragoman keys")

    async def _handle_keys(self) -> None:
        while self._keys and self.is_running and self.screen_stack:
            focused = self.focused or self.screen
            await super().on_event(self._keys.popleft())
            if self._keys:  # otherwise nothing is waiting
                await self._settled(focused)

    async def _settled(self, receiver: Any) -> None:
        """Waits until the receiver of a key, the widgets around it and the application have handled the key,
        and what they have sent each other about it."""
        for widget in receiver.ancestors_with_self:
            await _handled(widget)
        for widget in receiver.walk_children():  # the buttons of a radio field report to it
            await _handled(widget)
        for widget in receiver.ancestors_with_self:
            await _handled(widget)
        if self.screen_stack and not isinstance(self.focused, Input | TextArea):
            # A list that opens or closes moves the focus after the next refresh.
            await _handled(self.screen, after_refresh=True)
            await _handled(self)


async def _handled(pump: MessagePump, *, after_refresh: bool = False) -> None:
    """Waits until the widget has handled the messages that it has now."""
    done = asyncio.Event()
    schedule = pump.call_after_refresh if after_refresh else pump.call_later
    if schedule(done.set):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                await done.wait()
