"""Hooks that are programs: JSON in, exit code and JSON out.

I own: running a command in a process group of its own, its input and output within limits, and its end: when
`run` returns or is cancelled, nothing that it started in that group is alive. What the output means is
`runner.py`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from typing import Final, NamedTuple, cast

from dragoman.transports.orphans import group_members, guard

OUTPUT_LIMIT_BYTES: Final = 1024 * 1024
LAST_WORDS_SECONDS: Final = 0.25
"""How long the output may stay open once the program has ended: a child may hold it."""
REAP_SECONDS: Final = 2.0
POLL_SECONDS: Final = 0.005
DEPTH_LIMIT: Final = 4
"""Hooks that call tools run hooks in turn; so deep at most."""
DEPTH: Final = "DRAGOMAN_HOOK_DEPTH"


class Ended(NamedTuple):
    exit_code: int
    """Negative: the signal that ended it."""
    stdout: bytes
    stderr: bytes


class CommandTrouble(Exception):
    """Why a command could not be run to its end, in words."""


def environment(environ: Mapping[str, str], facts: Mapping[str, str]) -> dict[str, str]:
    """The person's own environment, for it is the person's own program, and the facts of this event."""
    # A value that starts with "()" is an exported shell function: code, not a setting.
    kept = {key: value for key, value in environ.items() if not value.startswith("()")}
    depth = kept.get(DEPTH, "0")
    deeper = int(depth) + 1 if depth.isascii() and depth.isdigit() and len(depth) < 4 else DEPTH_LIMIT + 1
    if deeper > DEPTH_LIMIT:
        raise CommandTrouble("hooks that call tools that have hooks: too deep")
    return {**kept, **facts, DEPTH: str(deeper)}


async def run(command: str, given: bytes, *, env: Mapping[str, str], cwd: str) -> Ended:
    """The command's end. Time limits are the caller's: cancel me."""
    try:
        transport, protocol = await _spawned(command, env, cwd)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the command
        raise CommandTrouble(f"it cannot be started: {_in_words(error)}") from None
    pid = transport.get_pid()
    guard.watch(pid)
    try:
        stdin = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))
        stdin.write(given)
        stdin.close()  # once everything is written; a program that reads nothing is free not to
        await protocol.ended
        return Ended(transport.get_returncode() or 0, bytes(protocol.output[1]), bytes(protocol.output[2]))
    finally:
        try:
            await _end(transport, protocol, pid)
        finally:
            guard.release(pid)


async def _spawned(
    command: str, env: Mapping[str, str], cwd: str
) -> tuple[asyncio.SubprocessTransport, _Conversation]:
    """The running command. Who is cancelled meanwhile ends it: asyncio would end its leader alone."""
    loop = asyncio.get_running_loop()
    spawning = asyncio.ensure_future(
        loop.subprocess_exec(
            lambda: _Conversation(loop), "/bin/sh", "-c", command, env=env, cwd=cwd, start_new_session=True
        )
    )
    try:
        return await asyncio.shield(spawning)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError, ValueError):
            transport, protocol = await spawning
            await _end(transport, protocol, transport.get_pid())
        raise


async def _end(transport: asyncio.SubprocessTransport, protocol: _Conversation, pid: int) -> None:
    """Everything in its group, at once."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    try:
        if 0 in protocol.open:
            # Not `close`, which waits for a program that will never read.
            cast("asyncio.WriteTransport", transport.get_pipe_transport(0)).abort()
        await asyncio.wait({protocol.exited}, timeout=REAP_SECONDS)
        await _group_gone(pid)
    finally:
        transport.close()
        if protocol.ended.done() and not protocol.ended.cancelled():
            protocol.ended.exception()  # looked at, lest asyncio complains that nobody did


async def _group_gone(group: int) -> None:
    """A signal is on its way for a moment; so are the children of a program that has ended."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + REAP_SECONDS
    while True:
        if not _group_lives(group) or loop.time() >= deadline:
            return
        await asyncio.sleep(POLL_SECONDS)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return bool(group_members(group))  # zombies that nobody reaps answer too


class _Conversation(asyncio.SubprocessProtocol):
    """Collects what a program prints, and knows when it has ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.output = {1: bytearray(), 2: bytearray()}
        self.ended: asyncio.Future[None] = loop.create_future()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.open = {0, 1, 2}
        self._timer: asyncio.TimerHandle | None = None

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if self.ended.done():
            return
        self.output[fd] += cast("bytes", data)
        if len(self.output[fd]) > OUTPUT_LIMIT_BYTES:
            size = OUTPUT_LIMIT_BYTES // 1024 // 1024
            self.ended.set_exception(CommandTrouble(f"it printed more than {size} MB"))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self.open.discard(fd)
        if self.exited.done() and not self.open & {1, 2}:
            self._finish()

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)
        if self.open & {1, 2}:
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
    return os.strerror(number).lower() if isinstance(number, int) else str(error)
