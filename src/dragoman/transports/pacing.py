"""Limits how long the input of one server keeps the event loop busy before other work runs.

A transport measures the time it takes to deliver messages. Once the budget of this iteration of the loop is
used up, it stops reading, so that the server has to wait, and continues in the next iteration.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

TURN_SECONDS: Final = 0.005
MESSAGE_SECONDS: Final = 5e-6
"""Added for each message: what reading it costs outside of the transport (parsing, tasks, system calls)."""

clock = time.perf_counter


class Pacer:
    """The budget of one server, shared by all its streams."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._spent_seconds = 0.0
        self._turn: asyncio.Future[None] | None = None
        """Done when the next iteration has begun; None while nothing was spent in this one."""

    @property
    def is_spent(self) -> bool:
        return self._spent_seconds >= TURN_SECONDS

    def spend(self, since: float, messages: int = 1) -> None:
        """Counts work that began at `since` (by `clock`) and ends now."""
        self._spent_seconds += clock() - since + messages * MESSAGE_SECONDS
        if self._turn is None:
            self._turn = self._loop.create_future()
            self._loop.call_soon(self._begin_turn)

    async def next_turn(self) -> None:
        """Waits until there is budget again."""
        while self.is_spent and self._turn is not None:
            await asyncio.shield(self._turn)

    def _begin_turn(self) -> None:
        turn, self._turn = self._turn, None
        self._spent_seconds = 0.0
        if turn is not None:
            turn.set_result(None)
