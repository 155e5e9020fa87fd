"""Threads for work that may wait long for another party, such as a name server or a keychain.

The threads of the event loop (`asyncio.to_thread`) are few, and everything shares them: a party
that does not answer would stop reloads, large results and other servers. These threads are used by nothing
else, and the program can end while they wait.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from dragoman.processes import run_in_forked_children

T = TypeVar("T")
AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]

_resolving: Final[dict[tuple[Any, ...], Future[Sequence[AddressInfo]]]] = {}
"""Names that are being resolved. All callers that resolve the same name share one thread, so there are at
most as many threads as names."""
_lock = threading.Lock()


async def in_own_thread(function: Callable[[], T]) -> T:
    """Runs the function in a thread of its own and returns its result. Cancelling the caller does not stop
    it. `OSError` if no thread can be started."""
    return await asyncio.wrap_future(_started(function))


async def resolve(host: str, port: int, *, family: int = 0, flags: int = 0) -> Sequence[AddressInfo]:
    """The result of `socket.getaddrinfo` for a TCP address. Raises `OSError`."""
    key = (host, port, family, flags)
    with _lock:
        found = _resolving.get(key)
        if found is None:
            found = _resolving[key] = _started(lambda: _resolved(key))
    return await asyncio.wrap_future(found)


def _resolved(key: tuple[Any, ...]) -> Sequence[AddressInfo]:
    host, port, family, flags = key
    try:
        return socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=flags)
    finally:
        with _lock:
            del _resolving[key]


def _forget_after_fork() -> None:
    """In a forked child: the threads that resolve names, and may hold the lock, belong to the parent."""
    global _lock
    _lock = threading.Lock()
    _resolving.clear()


run_in_forked_children(_forget_after_fork)


def _started(function: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # a cancelled caller must not cancel it for others

    def work() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # border: the caller gets it
            future.set_exception(error)

    try:
        threading.Thread(target=work, name="dragoman waiting", daemon=True).start()
    except RuntimeError:
        raise OSError(errno.EAGAIN, f"no thread: {os.strerror(errno.EAGAIN)}") from None
    return future
