"""The `subscriptions/listen` stream of a modern server: opened, kept open, and opened again when it ends.

There is one stream at a time, and it is not reopened without a pause. A server that does not offer the method
is not asked again. `resource_subscriptions.py` knows which changes are wanted.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from msgspec import Raw, Struct

from dragoman.connections.session import Session
from dragoman.errors import CallError, ConnectionLost, HttpError
from dragoman.wire.codec import Unreadable, decode_as
from dragoman.wire.messages import ABSENT

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
ACKNOWLEDGE_SECONDS: Final = 1.0
"""How long the acknowledgement is waited for, so that no change between subscribing and reading a list is
missed."""
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 30.0
STABLE_SECONDS: Final = 10.0
ALWAYS_SECONDS: Final = 1e8


def wanted_changes(capabilities: Mapping[str, Any]) -> dict[str, bool]:
    """The changes to request: of the lists whose changes the server declares to report."""
    return {
        f"{kind}ListChanged": True
        for kind in ("tools", "prompts", "resources")
        if isinstance(capabilities.get(kind), dict)
        and cast("dict[str, Any]", capabilities[kind]).get("listChanged") is True
    }


class _Acknowledged(Struct):
    notifications: dict[str, Any] = {}


class SubscriptionStream:
    def __init__(self, session: Session, changes: Mapping[str, Any], missed: Callable[[], None]) -> None:
        """`changes`: what to report. `missed`: called when the stream was down, so that some may have been
        missed."""
        self.honoured: Mapping[str, Any] | None = None
        """The changes that the server has agreed to report; None before its acknowledgement."""
        self.refusal: CallError | None = None
        """The error with which the server refused the last stream, if it did."""
        self._session = session
        self._changes = changes
        self._missed = missed
        self._acknowledged = asyncio.Event()
        self._may_have_missed = False
        self._task = asyncio.create_task(self._listen(), name=f"dragoman listen {session.server}")

    async def begun(self) -> None:
        """Returns when the server has acknowledged or refused the stream, or takes too long to answer.

        What changes from then on until it does acknowledge counts as missed.
        """
        acknowledged = asyncio.create_task(self._acknowledged.wait())
        try:
            done, _ = await asyncio.wait(
                (acknowledged, self._task),
                timeout=ACKNOWLEDGE_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            self._may_have_missed = self._may_have_missed or not done
        finally:
            acknowledged.cancel()

    def acknowledge(self, params: Raw = ABSENT) -> None:
        with contextlib.suppress(Unreadable):
            self.honoured = decode_as(_Acknowledged, params).notifications
        self._acknowledged.set()
        self._catch_up()

    def _catch_up(self) -> None:
        """After a time without a stream, once the new one is known to be open or should be by now."""
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
            if loop.time() - began > STABLE_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
            self._may_have_missed = True
            loop.call_later(ACKNOWLEDGE_SECONDS, self._catch_up)

    async def _once(self) -> bool:
        """One stream from its beginning to its end; whether another is worth opening."""
        params = {"notifications": self._changes}
        self.refusal = None
        try:
            await self._session.request(
                "subscriptions/listen", params, timeout_seconds=ALWAYS_SECONDS, is_long_lived=True
            )
        except ConnectionLost:
            return self._session.lost_cause is None
        except HttpError as error:
            self.refusal = error
            return error.status >= 500 or error.status == 429
        except CallError as error:
            self.refusal = error
            return False
        return True
