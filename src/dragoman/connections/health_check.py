"""Checks of an open link: whether the server still answers, and whether its credentials are still valid.

At most one check runs at a time. Its result is reported to the session, which ends if the server is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from dragoman.connections.session import Session
from dragoman.errors import DragomanError, HttpError
from dragoman.transport_types import Place

CHECK_SECONDS: Final = 5.0


class HealthCheck:
    def __init__(self, place: Place) -> None:
        """`place`: where the server runs."""
        self._place = place
        self._running: asyncio.Task[None] | None = None

    def start(self, check: Coroutine[Any, Any, None]) -> None:
        """Runs a check in a task of its own, unless one is running."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(check)
        else:
            check.close()

    def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()

    async def check_answers(self, session: Session, seconds: float) -> None:
        """Ends the session of a remote server that does not answer any more."""
        # The end of a process is noticed in any case; and one that is busy may not answer for a while.
        if self._place != "remote":
            return
        error = await _failure(session, seconds)
        if error is not None and error.code in ("timeout", "connection-lost"):
            session.lost("it no longer answers")

    async def check_credentials(self, session: Session) -> None:
        """Finds out whether a 401 was about one request, or whether the credentials are not valid any
        more."""
        error = await _failure(session, CHECK_SECONDS)
        if isinstance(error, HttpError) and error.status == 401:
            session.sign_in_needed(error)


async def _failure(session: Session, seconds: float) -> DragomanError | None:
    """Sends a request that every server answers. None: it was answered."""
    method = "ping" if session.driver.era == "legacy" else "server/discover"
    try:
        await session.request(method, {}, timeout_seconds=seconds, send_cancelled=False)
    except DragomanError as error:
        return error
    return None
