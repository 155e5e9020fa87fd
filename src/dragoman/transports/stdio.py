"""The transport to a server that is a child process and uses its standard streams.

Covers the two pipes, batching of writes, back-pressure, and error messages for programs that cannot be
started or that end. `lines.py` splits the output into lines; `process.py` starts the process, and ends it
with `family.py`, `reaper.py` and `orphans.py`. These need POSIX, as does `processes.py` one folder above.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import signal
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from msgspec import Struct

from dragoman.cleaning import CUT, visible
from dragoman.errors import CommandNotFound, ConnectError, StartFailed
from dragoman.transports.base import About, Details, OneLink, Sink
from dragoman.transports.lines import Flood, LineFramer
from dragoman.transports.pacing import TURN_SECONDS, clock
from dragoman.transports.process import ServerProcess, minimal_environment

STDERR_CAPACITY_BYTES: Final = 1024 * 1024
STDERR_TAIL_BYTES: Final = 4096
WRITE_BUFFER_BYTES: Final = 1024 * 1024
LINES_AT_ONCE: Final = 64
"""How many lines are delivered between two checks of the time."""
BATCH_MESSAGES: Final = 32
"""The maximum size of messages that are written together: fewer writes cost less, but the server should not
wait long for the first message."""
EXIT_GRACE_SECONDS: Final = 0.25
"""How long to wait for the exit code and the last stderr output after the end of the output."""


class Program(Struct, frozen=True):
    """The program to start, and how. Never printed: arguments and variables may be secret."""

    command: Sequence[str]
    env: Mapping[str, str]
    """Environment variables in addition to the few that every server gets."""
    cwd: str | None
    shown: str
    """How messages name the program."""

    def __repr__(self) -> str:
        return "<Program>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class StdioTransport(OneLink):
    def __init__(
        self,
        server: str,
        program: Program,
        *,
        limit_bytes: int,
        stall_seconds: float,
        stop_seconds: float = 0.0,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = server
        self._program = program
        self._limit_bytes = limit_bytes
        self._stall_seconds = stall_seconds
        self._stop_seconds = stop_seconds
        self._stderr = bytearray()
        """The newest bytes of stderr."""
        self._stderr_at_close: bytes | None = None
        """The end of stderr before this side began to end the process: later output is a consequence of
        that."""
        self._process: ServerProcess | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._readers: list[asyncio.BaseTransport] = []
        self._sink: Sink | None = None
        """None once the end has been reported or requested: nothing is delivered after that."""
        self._stderr_sink: Sink | None = None
        """Also receives the output of a process that is being ended."""
        self._search: asyncio.Task[int | None] | None = None
        """Searches for the process that continues serving after the started one has ended."""
        self._output_ended = False
        self._stderr_ended = False
        self._bursting = False
        """Whether several replies came at once: several requests will probably follow, and are collected."""
        self._outbox: list[bytes] = []
        self.congested = False
        self._room = asyncio.Event()
        self._room.set()
        self._stall_timer: asyncio.TimerHandle | None = None

    async def open(self, sink: Sink) -> None:
        self._sink = self._stderr_sink = sink
        environment = minimal_environment(os.environ, self._program.env)
        try:
            self._process = ServerProcess(self._program.command, environment, self._program.cwd)
        except NotImplementedError as error:
            hint = "Servers with a URL can be used; in the Windows Subsystem for Linux, all can."
            raise StartFailed(self._server, "start", str(error), hint=hint) from None
        except (OSError, ValueError) as error:
            raise self._start_error(error) from None
        stdin, stdout, stderr = self._process.pipes
        framer = LineFramer(sink.received, sink.oversized, self._limit_bytes)
        try:
            self._stdin, _ = await self._loop.connect_write_pipe(lambda: _Writer(self), stdin)
            self._stdin.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
            for protocol, pipe in ((_Stdout(self, framer), stdout), (_Stderr(self, self._stderr), stderr)):
                reader, _ = await self._loop.connect_read_pipe(lambda protocol=protocol: protocol, pipe)
                self._readers.append(reader)
        except BaseException:
            await self.close()
            raise
        self._process.on_exit(self._leader_exited)

    def send(self, message: bytes, about: About | None = None) -> None:
        if self._stdin is None or self._sink is None:
            raise ConnectionError("the process is gone")
        if not self._bursting and not self._outbox:
            # Closing, but not reported yet: asyncio would log a warning for every further write.
            if self._stdin.is_closing():
                raise ConnectionError("the process is gone")
            self._stdin.write(message + b"\n")
            return
        outbox = self._outbox
        if not outbox:
            self._loop.call_soon(self._flush)
        outbox.append(message)
        if len(outbox) >= BATCH_MESSAGES:
            self._flush()

    async def drained(self) -> None:
        await self._room.wait()

    def skip_stop_wait(self) -> None:
        self._stop_seconds = 0.0
        if self._process is not None:
            self._process.skip_stop_wait()

    async def close(self, *, graceful: bool = False) -> None:
        self._sink = None
        self.resume()
        self._outbox.clear()
        if self._search is not None:
            self._search.cancel()
        if self._process is not None and self._process.exit_code is None and self._stderr_at_close is None:
            self._stderr_at_close = self._stderr_tail()
        try:
            if self._process is not None:
                await self._process.end(self._close_input, self._stop_seconds if graceful else 0.0)
        finally:
            self._close_input()
            for reader in self._readers:
                reader.close()
            if self._process is not None:
                # Pipes that never got a reader because opening failed half-way.
                for pipe in self._process.pipes:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def _close_input(self) -> None:
        # asyncio fails in a callback of its own if it is aborted again before it has reported the end.
        if self._stdin is not None and not self._stdin.is_closing():
            # Not `close`, which would wait for a server that does not read.
            self._stdin.abort()

    def details(self) -> Details:
        process = self._process
        pid = process.pid if process else None
        words = self._stderr_tail() if self._stderr_at_close is None else self._stderr_at_close
        tail = words.decode("utf-8", "replace")
        return Details(
            pid=pid,
            # A server that continues in another process has not ended.
            exit_code=process.exit_code if process and (pid is None or self._sink is None) else None,
            stderr_tail=visible(tail).strip("\n"),
            left_behind=process.left_behind if process else (),
        )

    def _stderr_tail(self) -> bytes:
        mark = CUT.encode() if len(self._stderr) > STDERR_TAIL_BYTES else b""
        return mark + self._stderr[-STDERR_TAIL_BYTES:]

    def _flush(self) -> None:
        outbox, self._outbox = self._outbox, []
        if self._stdin is not None and outbox and not self._stdin.is_closing():
            outbox.append(b"")
            self._stdin.write(b"\n".join(outbox))

    @property
    def is_delivering(self) -> bool:
        return self._sink is not None

    def lines_came(self, count: int) -> None:
        self._bursting = count > 1

    def blank_lines_came(self, count: int) -> None:
        if self._sink is not None:
            self._sink.unrequested(count)

    def pause(self) -> None:
        self.congested = True
        self._room.clear()
        self._watch_stall(-1)

    def resume(self) -> None:
        self._stop_stall_timer()
        self._make_room()

    def _make_room(self) -> None:
        self.congested = False
        self._room.set()

    def input_closed(self) -> None:
        self._stdin = None
        self.resume()
        if self._sink is not None:
            # Usually the process is ending, and the end of its output follows.
            self._loop.call_later(2 * EXIT_GRACE_SECONDS, self.end_of_output, "it closed its stdin")

    def _watch_stall(self, size_before: int) -> None:
        if self._stdin is None:
            return
        size = self._stdin.get_write_buffer_size()
        if size == size_before:
            self.end_of_output(f"it has not read its stdin for {self._stall_seconds:g} s")
            return
        self._stall_timer = self._loop.call_later(self._stall_seconds, self._watch_stall, size)

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _leader_exited(self) -> None:
        # A wrapper may exit with success and leave a child that serves on the same pipes. A leader that
        # failed has left none: a process that still holds the pipes is then a helper that never answers.
        if self._process is None or self._sink is None:
            return
        if self._process.exit_code != 0:
            self._loop.call_later(EXIT_GRACE_SECONDS, self.end_of_output)
        else:
            self._search = self._loop.create_task(self._process.find_successor())

    def end_of_output(self, cause: str | None = None) -> None:
        """Handles the end of the output. Reports the reason after a short wait for the exit code."""
        if self._sink is None or self._process is None:
            return
        self._output_ended = True
        if cause is not None or self._is_end_known():
            self._report_lost(cause)
            return
        # Waits for both the exit code and the end of stderr, but not for long.
        self._process.on_exit(self._report_if_known)
        self._loop.call_later(EXIT_GRACE_SECONDS, self._report_lost, None)

    def _is_end_known(self) -> bool:
        return self._process is not None and self._process.exit_code is not None and self._stderr_ended

    def stderr_came(self, data: bytes) -> None:
        if self._stderr_sink is not None:
            self._stderr_sink.stderr(data)

    def stderr_ended(self) -> None:
        self.stderr_came(b"")
        self._stderr_ended = True
        if self._output_ended:
            self._report_if_known()

    def _report_if_known(self) -> None:
        if self._is_end_known():
            self._report_lost(None)

    def _report_lost(self, cause: str | None) -> None:
        sink, self._sink = self._sink, None
        self.resume()
        if sink is not None and self._process is not None:
            sink.lost(cause or describe_exit(self._process.exit_code))

    def _start_error(self, error: Exception) -> ConnectError:
        command, written, cwd = self._program.shown, self._program.command[0], self._program.cwd
        if cwd is not None and not os.path.isdir(cwd):
            return StartFailed(self._server, "start", f"{cwd} is not a folder", hint="Correct `cwd`.")
        if isinstance(error, FileNotFoundError):
            where = "" if os.path.dirname(written) else " on PATH"
            if len(written.split()) > 1:
                return CommandNotFound(
                    self._server,
                    "start",
                    f"there is no program {command!r}{where}",
                    hint="Write only the program as `command`, and the other words as `args`.",
                )
            path = minimal_environment(os.environ, self._program.env).get("PATH")
            if shutil.which(os.path.join(cwd or "", written) if not where else written, path=path):
                return CommandNotFound(
                    self._server,
                    "start",
                    f"the interpreter in the #! line of {command!r} does not exist",
                    hint="Correct it, or install the program again: virtual environments cannot be moved.",
                )
            return CommandNotFound(
                self._server,
                "start",
                f"there is no program {command!r}{where}",
                hint="Install it, or give its full path as `command`.",
            )
        if isinstance(error, PermissionError) and os.path.isdir(os.path.join(cwd or "", written)):
            return StartFailed(
                self._server,
                "start",
                f"{command!r} is a folder, not a program",
                hint="Give the path of a program as `command`.",
            )
        if isinstance(error, PermissionError):
            return StartFailed(
                self._server,
                "start",
                f"{command!r} is not executable",
                hint=f"Make it executable: chmod +x {command}",
            )
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        hint = "Is it a program for this system, or a script without a #! line?"
        if isinstance(error, OSError) and error.errno in (errno.EAGAIN, errno.EMFILE, errno.ENFILE):
            hint = "Raise the limits of this user or container, or start fewer servers."
        return StartFailed(self._server, "start", f"{command!r} cannot be run: {reason}", hint=hint)


def describe_exit(exit_code: int | None) -> str:
    if exit_code is None:
        return "it closed its stdout"
    if exit_code < 0:
        try:
            return f"it was ended by {signal.Signals(-exit_code).name}"
        except ValueError:
            return f"it was ended by signal {-exit_code}"
    return f"it exited with code {exit_code}"


class _Stdout(asyncio.Protocol):
    """Splits the output into lines, and delivers them within the budget of one iteration of the loop."""

    def __init__(self, owner: StdioTransport, framer: LineFramer) -> None:
        self._owner = owner
        self._framer = framer
        self._loop = asyncio.get_running_loop()
        self._pipe: asyncio.ReadTransport | None = None
        self._is_paused = False
        self._backlog: deque[bytes] = deque()
        """Lines that wait for the next iteration; nothing is read meanwhile, so that the server has to
        wait."""
        self._rest = b""
        """The beginning of the line that follows the backlog."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._pipe = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        if not self._owner.is_delivering:
            return
        try:
            lines, rest = self._framer.split(data)
            self._owner.lines_came(len(lines))
            if len(lines) <= LINES_AT_ONCE:
                self._deliver(lines)
                self._framer.keep(rest)
            else:
                self._backlog.extend(lines)
                self._rest = rest
                self._deliver_backlog()
        except Exception as error:  # border: no memory may be left
            self._failed(error)

    def _deliver(self, lines: Iterable[bytes]) -> None:
        if blank := self._framer.deliver(lines):
            self._owner.blank_lines_came(blank)

    def _deliver_backlog(self) -> None:
        backlog = self._backlog
        over = clock() + TURN_SECONDS
        while backlog and self._owner.is_delivering:
            if clock() > over:
                self._wait_a_turn()
                return
            self._deliver([backlog.popleft() for _ in range(min(LINES_AT_ONCE, len(backlog)))])
        backlog.clear()
        self._framer.keep(self._rest)

    def _wait_a_turn(self) -> None:
        if not self._is_paused and self._pipe is not None and not self._pipe.is_closing():
            self._pipe.pause_reading()
            self._is_paused = True
        self._loop.call_soon(self._continue)

    def _continue(self) -> None:
        try:
            self._deliver_backlog()
        except Exception as error:  # border: like above
            self._failed(error)
        if not self._backlog and self._pipe is not None and not self._pipe.is_closing():
            self._pipe.resume_reading()
            self._is_paused = False

    def _failed(self, error: Exception) -> None:
        """Ends the connection: after an error the rest of this line cannot be distinguished from the next."""
        cause = f"its output could not be read: {type(error).__name__}"
        self._owner.end_of_output(
            "it writes to stdout without a line end" if isinstance(error, Flood) else cause
        )

    def eof_received(self) -> None:
        if self._owner.is_delivering:
            self._framer.end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.end_of_output()


class _Stderr(asyncio.Protocol):
    def __init__(self, owner: StdioTransport, kept: bytearray) -> None:
        self._owner = owner
        self._kept = kept

    def data_received(self, data: bytes) -> None:
        self._kept += data
        del self._kept[:-STDERR_CAPACITY_BYTES]
        self._owner.stderr_came(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.stderr_ended()


class _Writer(asyncio.BaseProtocol):
    def __init__(self, owner: StdioTransport) -> None:
        self._owner = owner

    def pause_writing(self) -> None:
        self._owner.pause()

    def resume_writing(self) -> None:
        self._owner.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.input_closed()
