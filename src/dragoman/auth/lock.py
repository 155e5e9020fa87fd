"""A lock between processes, threads and tasks, held over reading, refreshing and writing one account."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from dragoman import paths
from dragoman.auth.errors import Unavailable

WAIT_SECONDS: Final = 60.0
"""How long to wait for the lock: longer than one refresh can take."""
_POLL_SECONDS: Final = 0.02


@asynccontextmanager
async def locked(path: Path, wait_seconds: float = WAIT_SECONDS) -> AsyncGenerator[None]:
    """Holds the lock of an account. The system releases it when the process of its holder ends."""
    lock = FileLock(path, mode=0o600, thread_local=False, timeout=0)
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            paths.make_private(path.parent)
            lock.acquire()
            break
        except Timeout:
            if time.monotonic() > deadline:
                raise Unavailable(
                    "another process has been refreshing the same sign-in for too long",
                    f"Look for a Dragoman process that hangs (the lock is {path}).",
                ) from None
            await asyncio.sleep(_POLL_SECONDS)
        except OSError as error:
            raise Unavailable(f"the lock {path} cannot be used: {error.strerror}") from None
    try:
        yield
    finally:
        lock.release()
