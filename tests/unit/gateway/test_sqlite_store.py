"""The store of a gateway that runs alone."""

import asyncio
import contextlib
import sqlite3
import threading
from pathlib import Path

import pytest

from dragoman.gateway.store import sqlite


async def test_a_cancelled_request_does_not_let_another_use_the_file_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch,
):
    opened, opened_again, may_open = threading.Event(), threading.Event(), threading.Event()

    def open_slowly(path: Path | None) -> sqlite3.Connection:
        (opened_again if opened.is_set() else opened).set()
        may_open.wait(10)
        return open_now(path)

    open_now = sqlite._opened  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(sqlite, "_opened", open_slowly)
    store = sqlite.SqliteStore()
    first = asyncio.create_task(store.get("a", 60))
    await asyncio.to_thread(opened.wait, 10)
    first.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await first
    second = asyncio.create_task(store.put("a", b"1", 60))
    assert not await asyncio.to_thread(opened_again.wait, 0.2)
    may_open.set()
    await second
    assert await store.get("a", 60) == b"1"
    await store.close()
