"""The `dragoman` command in a process forked from one that has already imported it.

The same code in its own process, without starting an interpreter: for tests that run many commands.
`tests/e2e/test_exit_codes.py` and a few others run every command as installed.
"""

import atexit
import contextlib
import fcntl
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import termios
import time
import traceback
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, NoReturn

from tests.e2e import command
from tests.e2e.command import DRAGOMAN, LIMIT_SECONDS

ROOT = Path(__file__).parents[2]
NUMBER_BYTES = 8


class Forked:
    """A command that runs: what the tests use of `subprocess.Popen`."""

    def __init__(
        self,
        argv: list[str],
        streams: list[int],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        umask: int = -1,
    ) -> None:
        self.args = argv
        self.returncode: int | None = None
        task = {
            "argv": argv,
            "cwd": str(cwd or os.getcwd()),
            "env": dict(os.environ if env is None else env),
            "umask": umask,
            "has_terminal": os.isatty(streams[0]),
        }
        self._status, theirs = os.pipe()
        try:
            _forker().start(task, [*streams, theirs])
        finally:
            os.close(theirs)
        self.pid = self._number()

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self._end()
        return self.returncode

    def wait(self, timeout: float = LIMIT_SECONDS) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout)
            self._end()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _end(self) -> None:
        self.returncode = os.waitstatus_to_exitcode(self._number())
        os.close(self._status)

    def _number(self) -> int:
        return int.from_bytes(os.read(self._status, NUMBER_BYTES), "big")


class _Forker:
    """Talks to the process that forks. It is no descendant of this one, so no test sees it as a leftover."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._socket, theirs = socket.socketpair()
        words = [sys.executable, "-m", "tests.e2e.forked", str(theirs.fileno())]
        env = {**os.environ, "HOME": "/nonexistent", "PYTHONPATH": str(ROOT)}
        subprocess.run(words, pass_fds=[theirs.fileno()], env=env, cwd=ROOT, check=True)
        theirs.close()
        atexit.register(self._socket.close)

    def start(self, task: dict[str, Any], descriptors: list[int]) -> None:
        """Runs the command with the first three as its standard streams; its pid, and at its end its status,
        are written to the fourth."""
        data = json.dumps(task).encode()
        with self._lock:  # threads of one test run commands at the same time
            socket.send_fds(self._socket, [len(data).to_bytes(NUMBER_BYTES, "big")], descriptors)
            self._socket.sendall(data)


_making = Lock()


@cache
def _made() -> _Forker:
    return _Forker()


def _forker() -> _Forker:
    with _making:
        return _made()


def run(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """As `tests.e2e.command.run`; the options are those of `Forked`."""
    argv = [str(DRAGOMAN), *map(str, words)]
    out, theirs_out = os.pipe()
    err, theirs_err = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        process = Forked(argv, [nothing, theirs_out, theirs_err], **options)
    finally:
        for descriptor in (nothing, theirs_out, theirs_err):
            os.close(descriptor)
    try:
        stdout, stderr = _read([out, err])
    except TimeoutError:
        process.kill()
        raise
    finally:
        os.close(out)
        os.close(err)
        code = process.wait()
    return subprocess.CompletedProcess(argv, code, stdout.decode(), stderr.decode())


class Terminal(command.Terminal):
    """As `tests.e2e.command.Terminal`."""

    def _start(self, slave: int) -> Any:
        if self._words[0] != str(DRAGOMAN):  # a shell that runs the command
            return super()._start(slave)
        return Forked(self._words, [slave] * 3, env=self._env)


def in_terminal(*words: str | Path) -> tuple[int, str]:
    """As `tests.e2e.command.in_terminal`."""
    with Terminal(*words) as terminal:
        output = terminal.finish()
        return terminal.process.returncode, output


def _read(descriptors: list[int]) -> list[bytes]:
    """Everything that comes from each, until all have ended."""
    found = dict.fromkeys(descriptors, b"")
    open_ones = set(descriptors)
    deadline = time.monotonic() + LIMIT_SECONDS
    while open_ones:
        ready, _, _ = select.select(list(open_ones), [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError(f"the command did not end within {LIMIT_SECONDS} s")
        for descriptor in ready:
            data = os.read(descriptor, 1 << 16)
            found[descriptor] += data
            if not data:
                open_ones.discard(descriptor)
    return [found[descriptor] for descriptor in descriptors]


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


# --- the process that forks ---


def _serve(connection: socket.socket) -> dict[str, Any] | None:
    """Forks for every task. Returns the task in the forked process, and None when the test run has ended."""
    running: dict[int, int] = {}
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready = select.select([connection, awake], [], [])[0]
        if awake in ready:
            os.read(awake, 1024)
            _report_ends(running)
        if connection not in ready:
            continue
        header, descriptors, _, _ = socket.recv_fds(connection, NUMBER_BYTES, 4)
        if len(header) < NUMBER_BYTES:
            return None
        task = json.loads(_exactly(connection, int.from_bytes(header, "big")))
        *streams, status = descriptors
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number, descriptor in enumerate(streams):
                os.dup2(descriptor, number)
            for descriptor in (*descriptors, *running.values(), awake, wake):
                os.close(descriptor)
            connection.close()
            return task
        for descriptor in streams:
            os.close(descriptor)
        running[pid] = status
        os.write(status, pid.to_bytes(NUMBER_BYTES, "big"))


def _report_ends(running: dict[int, int]) -> None:
    for pid, status in list(running.items()):
        ended, code = os.waitpid(pid, os.WNOHANG)
        if ended:
            with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
                os.write(status, code.to_bytes(NUMBER_BYTES, "big"))
            os.close(running.pop(pid))


def _run(task: dict[str, Any]) -> NoReturn:
    os.environ.clear()
    os.environ.update(task["env"])
    sys.argv = task["argv"]
    os.chdir(task["cwd"])
    if task["umask"] != -1:
        os.umask(task["umask"])
    if task["has_terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdin = sys.__stdin__ = _stream(0, "r", sys.stdin)
    sys.stdout = sys.__stdout__ = _stream(1, "w", sys.stdout)
    sys.stderr = sys.__stderr__ = _stream(2, "w", sys.stderr)
    from dragoman.cli.main import main

    code = 1
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # without taking every imported module apart


def _stream(descriptor: int, mode: str, like: Any) -> Any:
    """What an interpreter would have made of the descriptor."""
    by_line = mode == "w" and (descriptor == 2 or os.isatty(descriptor))
    stream = os.fdopen(descriptor, mode, encoding=like.encoding, errors=like.errors, closefd=False)
    if by_line:
        stream.reconfigure(line_buffering=True)
    return stream


def _import_everything() -> None:
    import importlib
    import pkgutil

    import dragoman

    for module in pkgutil.walk_packages(dragoman.__path__, "dragoman.", onerror=lambda _: None):
        is_used = not module.name.startswith(("dragoman.adapters", "dragoman.demo", "dragoman.testing"))
        if is_used and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for provider in ("anthropic", "openai"):  # seconds, each
        importlib.import_module(f"pydantic_ai.models.{provider}")
    gc.freeze()


if __name__ == "__main__":
    ours = socket.socket(fileno=int(sys.argv[1]))
    _import_everything()
    if os.fork():
        os._exit(0)
    os.setsid()
    todo = _serve(ours)
    if todo is not None:
        _run(todo)
