"""Runs a person's own command for its output: hooks, and helpers that print headers.

Starts it in a process group of its own and limits its input and output. When `run` returns or is cancelled,
every process of that group has been killed. The caller interprets the output. Servers, which stay, are
started by `transports/process.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol, cast

from dragoman.processes import HAS_GROUPS, KILL, NO_COMMANDS, signal_group, start_of

SHELL: Final = "/bin/sh"
OUTPUT_END_SECONDS: Final = 0.25
"""How long the output may stay open after the command has ended: a child process may hold it open."""
REAP_SECONDS: Final = 1.0


def search_path(environ: Mapping[str, str] = os.environ) -> str:
    """The search path for programs that Dragoman itself runs: PATH without folders that are relative to the
    working directory (`node_modules/.bin`), which may belong to a repository."""
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(filter(os.path.isabs, folders)) or os.defpath


class Watches(Protocol):
    """Ensures that a process group ends when this program ends, even if it is killed."""

    def watch(self, pid: int) -> None: ...
    def release(self, pid: int) -> None: ...


class Ended(NamedTuple):
    exit_code: int
    """The exit code; negative: the number of the signal that ended the command."""
    stdout: bytes
    stderr: bytes = b""


class CommandFailure(Exception):
    """A command did not finish. The message is the reason, without any output of the command."""


async def run(
    command: str,
    given: bytes = b"",
    *,
    env: Mapping[str, str],
    cwd: str,
    limit_bytes: int,
    watchdog: Watches,
) -> Ended:
    """Runs the command; returns its exit status and output. `CommandFailure` if it cannot be run or prints
    too much.

    `given` is its input, which the command need not read. The caller limits the time by cancelling.
    """
    if not HAS_GROUPS:
        raise CommandFailure(f"could not be started: {NO_COMMANDS}")
    try:
        transport, collector = await _spawned(command, env, cwd, limit_bytes)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the command or its environment
        raise CommandFailure(f"could not be started: {_in_words(error)}") from None
    pid = transport.get_pid()
    started = start_of(pid)
    watchdog.watch(pid)
    try:
        stdin = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))
        stdin.write(given)
        stdin.close()  # once everything is written
        await collector.ended
        printed = collector.printed
        return Ended(transport.get_returncode() or 0, bytes(printed[1]), bytes(printed[2]))
    finally:
        try:
            await _end(transport, collector, pid, started)
        finally:
            watchdog.release(pid)


async def _spawned(
    command: str, env: Mapping[str, str], cwd: str, limit_bytes: int
) -> tuple[asyncio.SubprocessTransport, _OutputCollector]:
    """Starts the command. Cancellation kills the whole group: asyncio would kill its leader only."""
    loop = asyncio.get_running_loop()
    spawning = asyncio.ensure_future(
        loop.subprocess_exec(
            lambda: _OutputCollector(loop, limit_bytes),
            SHELL,
            "-c",
            command,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(spawning)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError, ValueError):
            transport, collector = await spawning
            pid = transport.get_pid()
            await _end(transport, collector, pid, start_of(pid))
        raise


async def _end(
    transport: asyncio.SubprocessTransport, collector: _OutputCollector, pid: int, started: int
) -> None:
    """Kills every process of the command's group. The command may have ended long ago, and its pid belong to
    another program."""
    signal_group(pid, started, KILL)
    try:
        if 0 in collector.open:
            # Not `close`, which waits for a program that will never read.
            with contextlib.suppress(AttributeError):  # asyncio released it at this moment
                cast("asyncio.WriteTransport", transport.get_pipe_transport(0)).abort()
        await asyncio.wait({collector.exited}, timeout=REAP_SECONDS)
    finally:
        transport.close()
        if collector.ended.done() and not collector.ended.cancelled():
            collector.ended.exception()  # retrieved, so that asyncio does not report it as never retrieved


class _OutputCollector(asyncio.SubprocessProtocol):
    """Collects the output of a program, and detects its end."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit_bytes: int) -> None:
        self._loop = loop
        self._limit_bytes = limit_bytes
        self._timer: asyncio.TimerHandle | None = None
        self.printed = {1: bytearray(), 2: bytearray()}
        self.open = {0, 1, 2}
        self.exited: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        """Done when the program has exited and its output is complete, or when it printed too much."""

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if self.ended.done():
            return
        self.printed[fd] += cast("bytes", data)
        if len(self.printed[fd]) > self._limit_bytes:
            self.ended.set_exception(CommandFailure(f"printed more than {self._limit_bytes // 1024} kB"))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self.open.discard(fd)
        if self.exited.done() and not self.open & {1, 2}:
            self._finish()

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)
        if self.open & {1, 2}:
            self._timer = self._loop.call_later(OUTPUT_END_SECONDS, self._finish)
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
    return (
        os.strerror(number).lower() if isinstance(number, int) else "it contains a NUL, or a lone surrogate"
    )
