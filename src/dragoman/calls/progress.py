"""Progress on its way to whoever asked for it.

I own: calling a person's or program's callback without letting it harm the call. A callback that
raises is reported and called no more; an async one that is slow sees only the newest progress.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Final

from dragoman.cleaning import one_line
from dragoman.events import CallProgressed, EventBus, ServerLogged
from dragoman.wire.peer import Progress

LAST_WORD_SECONDS: Final = 0.5

OnProgress = Callable[[Progress], Awaitable[None] | None]


class ProgressRelay:
    def __init__(self, server: str, tool: str, callback: OnProgress | None, bus: EventBus) -> None:
        self._server = server
        self._tool = tool
        self._callback = callback
        self._bus = bus
        self._running: asyncio.Task[None] | None = None
        self._newest: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        if self._bus.has_listeners:
            self._bus.publish(
                CallProgressed(
                    server=self._server,
                    tool=self._tool,
                    progress=progress.progress,
                    total=progress.total,
                    message=None if progress.message is None else one_line(progress.message),
                )
            )
        if self._running is not None and not self._running.done():
            self._newest = progress
        else:
            self._hand_over(progress)

    async def finish(self) -> None:
        """Gives an async callback a moment for the last progress; it does not outlive its call."""
        if self._running is not None:
            await asyncio.wait([self._running], timeout=LAST_WORD_SECONDS)
            self.stop()

    def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()

    def _hand_over(self, progress: Progress) -> None:
        if self._callback is None:
            return
        try:
            pending = self._callback(progress)
        except Exception as error:  # border: the caller's code
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

    def _give_up(self, error: Exception) -> None:
        self._callback = None
        text = f"the progress callback of {self._tool} raised {type(error).__name__}: {error}"
        self._bus.publish(ServerLogged(server=self._server, level="error", text=text))


async def _nothing() -> None:
    return
