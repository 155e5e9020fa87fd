"""`python -m bench.agent_screen [--turns 300]`: how quick the terminal application is.

In a pseudo-terminal, with the real program: the time to the first paint, from a key press to its letter on
the screen, and memory; in an empty conversation, in one of many turns with long results, and in one of many
turns while an answer is written. The exit status is 1 if more than one key of a hundred takes longer than
100 ms, or one longer than 200 ms, or if memory grows by more than 200 MB. Other work on the machine delays
single keys.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple, Self

from bench.slow_writer import SlowWriter

DRAGOMAN = str(Path(sys.executable).parent / "dragoman")
MODEL = "anthropic:claude-sonnet-5"
ROWS, COLUMNS = 40, 120
LIMIT_SECONDS = 60.0
QUIET_SECONDS = 0.3
KEYS = "ABDGHJKLMNOPQRTUVXYZ" * 5
"""Letters that are painted for no other reason."""
KEY_LIMIT_SECONDS = 0.1
SLOWEST_LIMIT_SECONDS = 0.2
MEMORY_LIMIT_MB = 200.0
LONG_LINES, SHORT_LINES = 2000, 40
"""Of one result. With short ones the whole conversation fits into the model's context."""
ANSWER = "## Found\n\n" + "Some words of an **answer** with `code`. " * 20
_SEQUENCES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


class Measured(NamedTuple):
    paint_seconds: float
    ready_seconds: float
    keys_seconds: list[float]
    memory_mb: float

    @property
    def is_quick(self) -> bool:
        """Whether a person notices no delay."""
        *_, second, slowest = sorted(self.keys_seconds)
        return second <= KEY_LIMIT_SECONDS and slowest <= SLOWEST_LIMIT_SECONDS


class Window:
    """The application in a pseudo-terminal."""

    def __init__(self, url: str, *words: str) -> None:
        self._words = [DRAGOMAN, "--model", MODEL, "--base-url", url, *words]
        self.output = b""

    def __enter__(self) -> Self:
        self._terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            self._words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        while self._read(LIMIT_SECONDS):
            pass
        self.process.wait()
        os.close(self._terminal)

    def _read(self, seconds: float) -> bytes:
        if not select.select([self._terminal], [], [], seconds)[0]:
            return b""
        try:
            return os.read(self._terminal, 65536)
        except OSError:
            return b""

    def until(self, text: bytes) -> float:
        """Seconds from the start until the text is painted."""
        while text not in self.output:
            data = self._read(LIMIT_SECONDS)
            if not data:
                raise SystemExit(f"{text!r} was not painted: {self.output[-2000:]!r}")
            self.output += data
        return time.perf_counter() - self.started

    def rest(self) -> None:
        """Reads what is painted for a moment."""
        end = time.perf_counter() + QUIET_SECONDS
        while (left := end - time.perf_counter()) > 0:
            self._read(left)

    def type(self, text: bytes) -> None:
        os.write(self._terminal, text)

    def key(self, letter: bytes) -> float:
        """Seconds from the key to its letter on the screen."""
        self.rest()
        start, painted = time.perf_counter(), b""
        os.write(self._terminal, letter)
        while letter not in _SEQUENCES.sub(b"", painted):
            painted += self._read(LIMIT_SECONDS)
        return time.perf_counter() - start

    @property
    def memory_mb(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measured(ready: bytes, url: str, *words: str, prompt: bytes = b"") -> Measured:
    """`prompt`: sent before the keys are typed, so that the model writes meanwhile."""
    with Window(url, *words) as window:
        paint = window.until(b"Enter sends")
        loaded = window.until(ready)
        if prompt:
            window.rest()
            window.type(prompt + b"\r")
            window.until(b"Writing")
        keys = [window.key(letter.encode()) for letter in KEYS]
        return Measured(paint, loaded, keys, window.memory_mb)


def conversation(turns: int, lines: int) -> str:
    """Writes a transcript with results of so many lines; its id."""
    from pydantic_ai.messages import (
        ModelRequest,
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    from dragoman.agent.transcript import Transcript

    result = "\n".join(f"{number:6}  a line of a long result" for number in range(lines))
    transcript = Transcript.begin(Path.cwd(), MODEL)
    for number in range(turns):
        call = f"c{number}"
        transcript.add(ModelRequest([UserPromptPart(f"question {number}")]))
        transcript.add(ModelResponse([ToolCallPart("Read", {"file_path": "x"}, call)]))
        transcript.add(ModelRequest([ToolReturnPart("Read", result, call)]))
        transcript.add(ModelResponse([TextPart(f"{ANSWER}{number}")]))
    return transcript.id


def show(name: str, found: Measured) -> None:
    keys = found.keys_seconds
    print(
        f"{name:<20} first paint {found.paint_seconds:.2f} s, ready {found.ready_seconds:.2f} s, "
        f"key {median(keys) * 1000:.1f} ms (slowest of {len(keys)}: {max(keys) * 1000:.1f} ms), "
        f"memory {found.memory_mb:.0f} MB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=300)
    turns: int = parser.parse_args().turns
    with tempfile.TemporaryDirectory() as home, SlowWriter() as writer:
        os.environ.update(
            HOME=home, DRAGOMAN_CONFIG_DIR=home, TERM="xterm-256color", ANTHROPIC_API_KEY="none"
        )
        os.chdir(home)
        empty = measured(b"context 0%", writer.url)
        show("empty", empty)
        long = measured(b"is continued", writer.url, "--resume", conversation(turns, LONG_LINES))
        show(f"{turns} turns", long)
        short = conversation(turns, SHORT_LINES)
        writing = measured(b"is continued", writer.url, "--resume", short, prompt=b"go on")
        show(f"{turns} turns, writing", writing)
    grown = long.memory_mb - empty.memory_mb
    print(f"memory grows by {grown:.0f} MB")
    sys.exit(not long.is_quick or not writing.is_quick or grown > MEMORY_LIMIT_MB)


if __name__ == "__main__":
    main()
