"""The `dragoman` command in a process that is forked from one which has imported it already.

The same code in a process of its own, without the start of an interpreter: for tests that run many commands.
Tests in `tests/e2e` run the installed command.
"""

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from tests.e2e.command import DRAGOMAN, LIMIT_SECONDS

ROOT = Path(__file__).parents[2]


class _Forker:
    """Talks to the process that forks. It is no descendant of this one, so no test sees it as a leftover."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        words = [sys.executable, "-m", "tests.e2e.forked", str(theirs.fileno())]
        env = {**os.environ, "HOME": "/nonexistent", "PYTHONPATH": str(ROOT)}
        subprocess.run(words, pass_fds=[theirs.fileno()], env=env, cwd=ROOT, check=True)
        theirs.close()
        atexit.register(self._socket.close)

    def start(self, task: dict[str, Any], descriptors: list[int]) -> int:
        """The pid of a process that runs the command with these as its standard streams."""
        data = json.dumps(task).encode()
        socket.send_fds(self._socket, [len(data).to_bytes(8, "big")], descriptors)
        self._socket.sendall(data)
        return self._number()

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(self._number())

    def _number(self) -> int:
        return int.from_bytes(_exactly(self._socket, 8), "big")


_forkers: list[_Forker] = []


def run(
    *words: str | Path, cwd: str | Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """As `tests.e2e.command.run`."""
    if not _forkers:
        _forkers.append(_Forker())
    forker = _forkers[0]
    argv = [str(DRAGOMAN), *map(str, words)]
    out, theirs_out = os.pipe()
    err, theirs_err = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    task = {"argv": argv, "cwd": str(cwd or os.getcwd()), "env": dict(os.environ if env is None else env)}
    try:
        pid = forker.start(task, [nothing, theirs_out, theirs_err])
    finally:
        for descriptor in (nothing, theirs_out, theirs_err):
            os.close(descriptor)
    try:
        stdout, stderr = _read([out, err])
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(out)
        os.close(err)
        code = forker.wait()
    return subprocess.CompletedProcess(argv, code, stdout.decode(), stderr.decode())


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
    while True:
        header, descriptors, _, _ = socket.recv_fds(connection, 8, 3)
        if len(header) < 8:
            return None
        task = json.loads(_exactly(connection, int.from_bytes(header, "big")))
        pid = os.fork()
        if pid == 0:
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
                os.close(descriptor)
            connection.close()
            return task
        for descriptor in descriptors:
            os.close(descriptor)
        connection.sendall(pid.to_bytes(8, "big"))
        connection.sendall(os.waitpid(pid, 0)[1].to_bytes(8, "big"))


def _run(task: dict[str, Any]) -> NoReturn:
    os.environ.clear()
    os.environ.update(task["env"])
    sys.argv = task["argv"]
    os.chdir(task["cwd"])
    from dragoman.cli.main import main

    code = main()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # without taking every imported module apart


def _import_everything() -> None:
    import importlib
    import pkgutil

    import dragoman

    for module in pkgutil.walk_packages(dragoman.__path__, "dragoman.", onerror=lambda _: None):
        is_used = not module.name.startswith(("dragoman.adapters", "dragoman.demo", "dragoman.testing"))
        if is_used and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
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
