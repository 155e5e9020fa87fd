"""A server's process: started in a group of its own, watched, and ended with everything it started.

I own: spawning with a minimal environment, the exit code and the shutdown ladder (input closed,
SIGINT, SIGTERM, SIGKILL, each to the whole group). What is said over the pipes is `stdio`'s.
I guarantee that after `end` no member of the group is alive and the child is reaped.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Final

from dragoman.transports.orphans import escapees, group_members, guard, is_alive

INHERITED: Final = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
)
"""All that a server gets of our environment; anything else must stand in its entry."""

LADDER: Final = ((0.08, signal.SIGINT), (0.1, signal.SIGTERM), (0.4, signal.SIGKILL))
"""How long to wait, then what to send. The first wait is for servers that end when their input does."""

_POLL_SECONDS: Final = 0.01


def minimal_environment(environ: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    # A value that starts with "()" is an exported shell function: code, not a setting.
    kept = {key: environ[key] for key in INHERITED if key in environ and not environ[key].startswith("()")}
    return {**kept, **extra}


class ServerProcess:
    """One running server. Must be created on the loop that will watch it."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
        """Starts the program; raises OSError if the system cannot."""
        self._loop = asyncio.get_running_loop()
        self._on_exit: list[Callable[[], None]] = []
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            bufsize=0,
        )
        self._ended = False
        self.left_behind: tuple[int, ...] = ()
        """Descendants that had left the group and are none of our business any more; to be reported."""
        self._pidfd: int | None = None
        guard.watch(self.pid)
        self._watch()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._popen.returncode

    @property
    def pipes(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """Its stdin, stdout and stderr."""
        stdin, stdout, stderr = self._popen.stdin, self._popen.stdout, self._popen.stderr
        if stdin is None or stdout is None or stderr is None:
            raise AssertionError("all three pipes were asked for")
        return stdin, stdout, stderr

    def on_exit(self, callback: Callable[[], None]) -> None:
        """Calls back on the loop once the leader has ended; at once if it already has."""
        if self._popen.returncode is not None:
            self._loop.call_soon(callback)
        else:
            self._on_exit.append(callback)

    async def end(self) -> None:
        """Ends the whole group; its input should be closed already. Bounded by the ladder."""
        if self._ended:
            return
        strays = escapees(self.pid)
        try:
            for seconds, number in LADDER:
                if await self._gone(seconds):
                    break
                self._signal(number)
            await self._gone(1.0)
        finally:
            # Also reached by cancellation: then at once and without a ladder.
            if not self._ended:
                self._ended = True
                if self._popen.returncode is None or group_members(self.pid):
                    self._signal(signal.SIGKILL)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._popen.wait(1.0)
                self._unwatch()
                guard.release(self.pid)
                self.left_behind = tuple(facts.pid for facts in strays if is_alive(facts))

    async def _gone(self, seconds: float) -> bool:
        deadline = self._loop.time() + seconds
        while True:
            if self._popen.poll() is not None and not self._group_lives():
                return True
            if self._loop.time() >= deadline:
                return False
            await asyncio.sleep(_POLL_SECONDS)

    def _group_lives(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        # Zombies that nobody reaps answer too; they are not alive.
        return bool(group_members(self.pid)) if os.path.exists("/proc/self/stat") else True

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _watch(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            # No pidfd on this system: a thread of its own waits instead.
            threading.Thread(target=self._wait_in_thread, daemon=True).start()
        else:
            self._loop.add_reader(self._pidfd, self._exited)

    def _wait_in_thread(self) -> None:
        self._popen.wait()
        with contextlib.suppress(RuntimeError):  # the loop may be closed by now
            self._loop.call_soon_threadsafe(self._exited)

    def _unwatch(self) -> None:
        pidfd, self._pidfd = self._pidfd, None
        if pidfd is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(pidfd)
            os.close(pidfd)

    def _exited(self) -> None:
        if self._popen.poll() is None:
            return
        self._unwatch()
        callbacks, self._on_exit = self._on_exit, []
        for callback in callbacks:
            callback()
