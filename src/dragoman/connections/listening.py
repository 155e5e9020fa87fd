"""Asking a modern server to tell of changes: `subscriptions/listen`, kept open.

I own: which changes are asked for, and opening the stream again when it ends. A server that does not offer
it is left alone. I guarantee that no more than one is open per session, and that they are not reopened in a
storm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from dragoman.connections.session import Session
from dragoman.errors import CallError, ConnectionLost, HttpError

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
ACKNOWLEDGE_SECONDS: Final = 1.0
"""Changes between subscribing and reading a list are not to slip through; a slow server is not waited for."""
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 30.0
STOOD_SECONDS: Final = 10.0
ALWAYS_SECONDS: Final = 1e8


def wanted_changes(capabilities: Mapping[str, Any]) -> dict[str, bool]:
    """What to ask for: the lists a server says it will tell changes of."""
    return {
        f"{kind}ListChanged": True
        for kind in ("tools", "prompts", "resources")
        if isinstance(capabilities.get(kind), dict)
        and cast("dict[str, Any]", capabilities[kind]).get("listChanged") is True
    }


def listen_to(
    session: Session, capabilities: Mapping[str, Any], missed: Callable[[], None]
) -> Listening | None:
    """Listens, if a server of this era and with these capabilities has anything to tell."""
    changes = wanted_changes(capabilities) if session.driver.era == "modern" else {}
    return Listening(session, changes, missed) if changes else None


class Listening:
    def __init__(self, session: Session, changes: Mapping[str, bool], missed: Callable[[], None]) -> None:
        """`missed`: called when the stream was down for a while, so that changes may have been missed."""
        self._session = session
        self._changes = changes
        self._missed = missed
        self._acknowledged = asyncio.Event()
        self._may_have_missed = False
        self._task = asyncio.create_task(self._listen(), name=f"dragoman listen {session.server}")

    async def begun(self) -> None:
        """Returns when the server has acknowledged, will not listen, or takes too long to say."""
        acknowledged = asyncio.create_task(self._acknowledged.wait())
        try:
            await asyncio.wait(
                (acknowledged, self._task),
                timeout=ACKNOWLEDGE_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            acknowledged.cancel()

    def acknowledge(self) -> None:
        self._acknowledged.set()
        self._catch_up()

    def _catch_up(self) -> None:
        """After a time without a stream, once the new one is known to stand or should by now."""
        if self._may_have_missed:
            self._may_have_missed = False
            self._missed()

    def stop(self) -> None:
        self._may_have_missed = False
        self._task.cancel()

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        pause = FIRST_PAUSE_SECONDS
        while self._session.lost_cause is None:
            began = loop.time()
            if not await self._once():
                return
            if loop.time() - began > STOOD_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
            self._may_have_missed = True
            loop.call_later(ACKNOWLEDGE_SECONDS, self._catch_up)

    async def _once(self) -> bool:
        """One stream from its beginning to its end; whether another is worth opening."""
        params = {"notifications": self._changes}
        try:
            await self._session.request(
                "subscriptions/listen", params, timeout_seconds=ALWAYS_SECONDS, is_standing=True
            )
        except ConnectionLost:
            return self._session.lost_cause is None
        except HttpError as error:
            return error.status >= 500 or error.status == 429
        except CallError:
            return False
        return True
