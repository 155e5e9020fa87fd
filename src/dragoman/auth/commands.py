"""Running a command for what it prints.

I own: starting it in a process group of its own, what it prints within a limit, and its end: when `output_of`
returns or is cancelled, everything in that group has been killed. Its stdin is empty, and its stderr is not
kept. What the output means is the caller's; so is the time limit: cancel me.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol, cast

SHELL: Final = "/bin/sh"
LAST_WORDS_SECONDS: Final = 0.25
"""How long the output may stay open once the command has ended: a child may hold it."""
REAP_SECONDS: Final = 1.0


class Watches(Protocol):
    """Sees to it that a process group ends with this program, however that ends."""

    def watch(self, pid: int) -> None: ...
    def release(self, pid: int) -> None: ...


class Ended(NamedTuple):
    exit_code: int
    """Negative: the signal that ended it."""
    output: bytes


class CommandTrouble(Exception):
    """Why a command did not come to its end, in words that hold nothing of its output."""


async def output_of(
    command: str, *, env: Mapping[str, str], cwd: str, limit_bytes: int, guard: Watches
) -> Ended:
    """How the command ended, and what it printed; `CommandTrouble` if it cannot be run or prints too much."""
    try:
        transport, listener = await _spawned(command, env, cwd, limit_bytes)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the command or its environment
        raise CommandTrouble(f"could not be started: {_in_words(error)}") from None
    pid = transport.get_pid()
    guard.watch(pid)
    try:
        await listener.ended
        return Ended(transport.get_returncode() or 0, bytes(listener.output))
    finally:
        try:
            await _end(transport, listener, pid)
        finally:
            guard.release(pid)


async def _spawned(
    command: str, env: Mapping[str, str], cwd: str, limit_bytes: int
) -> tuple[asyncio.SubprocessTransport, _Listener]:
    """The running command. Who is cancelled meanwhile ends it: asyncio would end its leader alone."""
    loop = asyncio.get_running_loop()
    spawning = asyncio.ensure_future(
        loop.subprocess_exec(
            lambda: _Listener(loop, limit_bytes),
            SHELL,
            "-c",
            command,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(spawning)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError, ValueError):
            transport, listener = await spawning
            await _end(transport, listener, transport.get_pid())
        raise


async def _end(transport: asyncio.SubprocessTransport, listener: _Listener, pid: int) -> None:
    """Everything in its group, at once."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    try:
        await asyncio.wait({listener.exited}, timeout=REAP_SECONDS)
    finally:
        transport.close()
        if listener.ended.done() and not listener.ended.cancelled():
            listener.ended.exception()  # looked at, lest asyncio complains that nobody did


class _Listener(asyncio.SubprocessProtocol):
    """Collects what a command prints, and knows when it has ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit_bytes: int) -> None:
        self._loop = loop
        self._limit_bytes = limit_bytes
        self._is_open = True
        self._timer: asyncio.TimerHandle | None = None
        self.output = bytearray()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        """It has exited, and said all it had to say; or it said too much."""

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if self.ended.done():
            return
        self.output += cast("bytes", data)
        if len(self.output) > self._limit_bytes:
            trouble = CommandTrouble(f"printed more than {self._limit_bytes // 1024} kB")
            self.ended.set_exception(trouble)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._is_open = False
        if self.exited.done():
            self._finish()

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)
        if self._is_open:
            self._timer = self._loop.call_later(LAST_WORDS_SECONDS, self._finish)
        else:
            self._finish()

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish()

    def _finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self.ended.done():
            self.ended.set_result(None)


def _in_words(error: Exception) -> str:
    number = getattr(error, "errno", None)
    return os.strerror(number).lower() if isinstance(number, int) else "it holds a NUL character"
