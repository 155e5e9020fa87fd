"""The installed `dragoman` command: run with pipes, or in a terminal."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

DRAGOMAN = Path(sys.executable).parent / "dragoman"
SERVER = Path(__file__).parent / "server.py"
ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 40.0
"""Reached only by a command that hangs."""


def run(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    return subprocess.run(
        [str(DRAGOMAN), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        **options,
    )


def entry(mode: str, *arguments: str | Path) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-S", "-E", str(SERVER), mode, *map(str, arguments)]}


def config(**servers: dict[str, Any]) -> str:
    """JSON text for --mcp-config."""
    return json.dumps({"mcpServers": servers})


QUESTION = re.compile(rb"  [a-z](?:/[a-z])+: \Z")
"""How every question ends: the keys that answer it."""


class Terminal:
    """A command in a terminal of its own. Its output is passed on as written: no line end is translated."""

    def __init__(self, *words: str | Path, env: dict[str, str] | None = None) -> None:
        self._words = [str(DRAGOMAN), *map(str, words)]
        self._env = {**os.environ, "TERM": "xterm-256color", "DRAGOMAN_PLAIN": "1", **(env or {})}
        self._output = b""
        self._asked_until = 0

    def __enter__(self) -> Self:
        self._master, slave = pty.openpty()
        attributes = termios.tcgetattr(slave)
        attributes[1] &= ~termios.OPOST
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.process = self._start(slave)
        os.close(slave)
        return self

    def _start(self, slave: int) -> Any:
        return subprocess.Popen(
            self._words,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=self._env,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._master)

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def answer(self, key: bytes) -> None:
        """Waits for the next question, and types the key: what is typed before a question is no answer."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not self._is_asked():
            assert self._take(deadline), f"ended without a question: {self._output.decode()!r}"
        self.type(key)

    def wait_for(self, text: str) -> None:
        """Waits until this has appeared."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while text.encode() not in self._output:
            assert self._take(deadline), f"{text!r} did not appear: {self._output.decode()!r}"

    def finish(self, answering: bytes = b"") -> str:
        """Waits for the end; everything that appeared. `answering`: what is typed at each question."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while self._take(deadline):
            if answering and self._is_asked():
                self.type(answering)
        self.process.wait(timeout=LIMIT_SECONDS)
        return self._output.decode()

    def _take(self, deadline: float) -> bool:
        """Takes what appears next; false at the end of output."""
        if not select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how Linux says that nobody holds the terminal any more
            data = b""
        self._output += data
        return bool(data)

    def _is_asked(self) -> bool:
        if not QUESTION.search(self._output, self._asked_until):
            return False
        self._asked_until = len(self._output)
        return True


def in_terminal(*words: str | Path) -> tuple[int, str]:
    """Exit code and everything that appeared."""
    with Terminal(*words) as terminal:
        output = terminal.finish()
        return terminal.process.returncode, output


OUR_OWN_SEQUENCES = re.compile(
    r"\x1b\[(?:\d{1,3};)*\d{1,3}m|\x1b\[\?25[lh]|\r?\x1b\[(?:2K|1A)"
    r"|[\u2800-\u28ff](?:\x1b\[\d+m)? \d+ of \d+ servers checked[^\r\n\x1b]*"
)
"""What the command itself writes: styles, the line that rich repaints, the picture's pixels."""


def plain(output: str) -> str:
    return OUR_OWN_SEQUENCES.sub("", output)


def wait_for_file(path: Path) -> str:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} was never written"
        time.sleep(0.01)
    return path.read_text()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
