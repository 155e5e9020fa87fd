"""Passes progress of a call to the caller's callback and to listeners for events.

The callback cannot disturb the call and is not called more often than a person can read. One that raises is
reported and not called again; a slow async one gets only the newest progress. The last progress of a call is
always delivered.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import structs

from dragoman.cleaning import one_line
from dragoman.content.redact import Redactor
from dragoman.events import CallProgressed, EventBus, ServerLogged
from dragoman.wire.peer import Progress

LAST_REPORT_SECONDS: Final = 0.5
PAUSE_SECONDS: Final = 0.05
"""The average pause between two reports of progress. Progress that comes sooner waits, and is replaced by
the next."""
AT_ONCE: Final = 10
"""How many reports are made without a pause after a time without progress."""

OnProgress = Callable[[Progress], Awaitable[None] | None]


class ProgressRelay:
    def __init__(
        self,
        server: str,
        tool: str,
        callback: OnProgress | None,
        bus: EventBus,
        redact: Redactor | None = None,
        call_id: str = "",
    ) -> None:
        self._call_id = call_id
        self._redact = redact
        self._server = server
        self._tool = tool
        self._callback = callback
        self._bus = bus
        self._running: asyncio.Task[None] | None = None
        self._newest: Progress | None = None
        self._loop = asyncio.get_running_loop()
        self._free_at = 0.0
        """When the pauses after all that were reported are over."""
        self._held: Progress | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self, progress: Progress) -> None:
        if progress.message:
            message = self._redact.text(progress.message) if self._redact is not None else progress.message
            progress = structs.replace(progress, message=one_line(message))
        wait = self._free_at - (AT_ONCE - 1) * PAUSE_SECONDS - self._loop.time()
        if wait <= 0:
            self._held = None
            self._report(progress)
            return
        self._held = progress
        if self._timer is None:
            self._timer = self._loop.call_later(wait, self._report_held)

    def _report_held(self) -> None:
        self._timer = None
        if self._held is not None:
            progress, self._held = self._held, None
            self._report(progress)

    def _report(self, progress: Progress) -> None:
        self._free_at = max(self._free_at, self._loop.time()) + PAUSE_SECONDS
        if self._bus.has_call_listeners:
            self._bus.publish(
                CallProgressed(
                    server=self._server,
                    tool=self._tool,
                    call_id=self._call_id,
                    progress=progress.progress,
                    total=progress.total,
                    message=progress.message,
                )
            )
        if self._running is not None and not self._running.done():
            self._newest = progress
        else:
            self._hand_over(progress)

    async def finish(self) -> None:
        """Gives an async callback a moment for the last progress; it does not outlive its call."""
        self._report_held()
        if self._running is not None:
            await asyncio.wait([self._running], timeout=LAST_REPORT_SECONDS)
            self.stop()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._running is not None:
            self._running.cancel()

    def _hand_over(self, progress: Progress) -> None:
        if self._callback is None:
            return
        try:
            pending = self._callback(progress)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # border: the caller's code; answers may be waiting behind the message
            self._give_up(error)
            return
        if inspect.isawaitable(pending):
            self._running = asyncio.create_task(self._run(pending))

    async def _run(self, pending: Awaitable[None]) -> None:
        try:
            await pending
            while self._newest is not None and self._callback is not None:
                progress, self._newest = self._newest, None
                pending = self._callback(progress) or _nothing()
                await pending
        except Exception as error:  # border: the caller's code
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        self._callback = None
        text = f"the progress callback of {self._tool} raised {type(error).__name__}: {error}"
        self._bus.publish(ServerLogged(server=self._server, level="error", text=text))


async def _nothing() -> None:
    return
