"""Runs hooks of the event `Notification` in tasks of their own, so that nothing waits for them."""

from __future__ import annotations

import asyncio

from dragoman.hooks.active import ActiveHooks


class Notices:
    def __init__(self, hooks: ActiveHooks) -> None:
        self._hooks = hooks
        self._tasks: set[asyncio.Task[tuple[str, ...]]] = set()

    def give(self, kind: str, title: str, message: str) -> None:
        if not self._hooks.wants("Notification", kind):
            return
        facts = {"message": message, "title": title, "notification_type": kind}
        task = asyncio.create_task(self._hooks.notify("Notification", facts))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
