"""Telling hooks that a person's attention is wanted, while nobody waits for them.

I own: the tasks in which they are told.
"""

from __future__ import annotations

import asyncio

from dragoman.hooks.points import Hooks


class Notices:
    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._telling: set[asyncio.Task[tuple[str, ...]]] = set()

    def give(self, kind: str, title: str, message: str) -> None:
        if not self._hooks.wants("Notification", kind):
            return
        facts = {"message": message, "title": title, "notification_type": kind}
        task = asyncio.create_task(self._hooks.tell("Notification", facts))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)
