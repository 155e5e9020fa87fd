"""A server's process: started in a session of its own with a minimal environment, watched, and ended.

`end` ends it with its whole family (`family.py`) and describes the processes that could not be ended.
`stdio.py` handles the messages in the pipes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Final

from dragoman.processes import HAS_GROUPS, KILL, MARKER, NO_COMMANDS
from dragoman.transports.family import Family
from dragoman.transports.orphans import watchdog
from dragoman.transports.reaper import Ending, reaper

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
"""The variables that a server inherits from this process; all others must be in its entry."""


def minimal_environment(environ: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    # A value that starts with "()" is an exported shell function: code, not a setting.
    kept = {key: environ[key] for key in INHERITED if key in environ and not environ[key].startswith("()")}
    return {**kept, **extra}


class ServerProcess:
    """One running server. Must be created on the loop that will watch it."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
        """Starts the program; raises OSError if the system cannot."""
        if not HAS_GROUPS:
            raise NotImplementedError(NO_COMMANDS)
        self._loop = asyncio.get_running_loop()
        self._on_exit: list[Callable[[], None]] = []
        self._marker = marker = watchdog.new_marker()
        try:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**env, MARKER: marker},
                cwd=cwd,
                start_new_session=True,
                bufsize=0,
            )
        except BaseException:
            watchdog.release(0)
            raise
        self._family = Family(self._popen, marker)
        self._ending: Ending | None = None
        self.left_behind: tuple[str, ...] = ()
        """The processes that could not be ended: pid and command of each."""
        self._successor: int | None = None
        self._skips_stop_wait = False
        self._pidfd: int | None = None
        watchdog.watch(self._popen.pid)
        self._watch()

    @property
    def pid(self) -> int | None:
        """The pid of the serving process: the one that was started, or its successor."""
        return self._popen.pid if self._family.exit_code is None else self._successor

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._family.exit_code

    @property
    def pipes(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """Its stdin, stdout and stderr."""
        stdin, stdout, stderr = self._popen.stdin, self._popen.stdout, self._popen.stderr
        if stdin is None or stdout is None or stderr is None:
            raise AssertionError("all three pipes were asked for")
        return stdin, stdout, stderr

    def on_exit(self, callback: Callable[[], None]) -> None:
        """Calls the function on the loop once the leader has ended; immediately if it already has."""
        if self._family.exit_code is not None:
            self._loop.call_soon(callback)
        else:
            self._on_exit.append(callback)

    async def find_successor(self) -> int | None:
        """The pid of a process that continues serving after the started one has ended."""
        self._successor = await reaper.find_living(self._family)
        return self._successor

    def skip_stop_wait(self) -> None:
        """Ends the time it has to exit on its own."""
        self._skips_stop_wait = True
        if self._ending is not None:
            self._ending.skip_stop_wait()

    async def end(self, close_input: Callable[[], None], stop_seconds: float = 0.0) -> None:
        """Closes its input, and ends its whole family. Bounded in time.

        `stop_seconds`: how long it may take to finish its work before the first signal.
        """
        try:
            if self._ending is None:
                # Before it can end: a child with its own session and environment can only be found through
                # its parent.
                await reaper.find_living(self._family)
            close_input()
            if self._ending is None:
                stop_seconds = 0.0 if self._skips_stop_wait else stop_seconds
                self._ending = reaper.end(self._family, self._release, stop_seconds)
            self.left_behind = await asyncio.shield(self._ending.future)
            self._successor = None
        except asyncio.CancelledError:
            # Immediately in that case: the program may end before the waits between signals are over.
            close_input()
            self._family.signal(KILL, ())
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(1.0)
            raise
        finally:
            self._unwatch()

    def _release(self, is_known: bool) -> None:
        """`is_known`: whether what is left of its family is known; otherwise it ends with this program."""
        if not is_known:
            watchdog.hold(self._marker)
        watchdog.release(self._popen.pid)

    def _watch(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self._popen.pid)
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
        if self._family.exit_code is None:
            return
        self._unwatch()
        callbacks, self._on_exit = self._on_exit, []
        for callback in callbacks:
            callback()
