"""`dragoman call` through a local gateway, if there is one for this folder.

Only plain calls are made in this way. If there is an option that this module does not know, or the gateway
cannot make the call, `commands/call.py` makes it. This module imports nothing that takes long to load.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dragoman.cli.local_gateway.endpoint import fits_command, has_sockets, is_own_peer, socket_path, stamps
from dragoman.cli.terminal_output import is_animated
from dragoman.errors import ConfigError
from dragoman.version import VERSION

CONNECT_SECONDS: Final = 1.0
NOT_CONNECTED, INTERRUPTED = 4, 130  # as in exit_codes.py
_FLAGS: Final = {"--json": "json", "-y": "yes", "--yes": "yes"}


class GatewayUnusable(Exception):
    """The call has to be made by a host of this process."""


def plain_call(words: Sequence[str]) -> dict[str, Any] | None:
    """The request, if the command line has only a call with its arguments; otherwise None."""
    asked: dict[str, Any] = {"words": [], "json": False, "yes": False, "timeout": None}
    rest = iter(words)
    for word in rest:
        if word in _FLAGS:
            asked[_FLAGS[word]] = True
        elif word == "--timeout":
            try:
                asked["timeout"] = float(next(rest, ""))
            except ValueError:
                return None
        elif word.startswith(("-", "@")):
            return None
        else:
            asked["words"].append(word)
    is_valid = asked["words"] and (asked["timeout"] is None or 0 < asked["timeout"] < float("inf"))
    return asked if is_valid else None


def call(words: Sequence[str]) -> int | None:
    """Makes the call and returns the exit code. None: there is no local gateway that can make it."""
    asked = plain_call(words)
    if asked is None or not has_sockets():
        return None
    try:
        cwd = os.getcwd()
        path = str(socket_path(cwd))
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gateway:
            gateway.settimeout(CONNECT_SECONDS)
            gateway.connect(path)
            return _Call(gateway, asked).make(cwd)
    except (OSError, GatewayUnusable, ConfigError, UnicodeEncodeError):
        return None


class _Call:
    def __init__(self, gateway: socket.socket, asked: Mapping[str, Any]) -> None:
        self._gateway = gateway
        self._lines = gateway.makefile("rb")
        self._asked = asked
        self._progress: Any = None

    def make(self, cwd: str) -> int:
        if not is_own_peer(self._gateway):
            raise GatewayUnusable
        hello = self._receive()
        if not fits_command(hello, cwd, VERSION):
            raise GatewayUnusable
        if stamps(hello["files"]) != hello["files"]:
            self._send({"outdated": True})  # the gateway reads its files again, for the next call
            raise GatewayUnusable
        self._send({**self._asked, **_terminal()})
        if "declined" in self._receive():
            raise GatewayUnusable
        self._send({"confirmed": True})  # from now on only the gateway may make the call
        self._gateway.settimeout(None)
        try:
            return self._follow()
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return INTERRUPTED
        except (OSError, ValueError) as error:
            if isinstance(error, BrokenPipeError) and not error.filename and sys.stdout.closed:
                raise
            return self._report_loss()
        finally:
            self._hide_progress()

    def _follow(self) -> int:
        while True:
            message = self._receive()
            if "question" in message:
                self._hide_progress()
                self._send(_answer(message, yes=self._asked["yes"]))
            elif "progress" in message:
                self._show_progress(message["progress"])
            elif "exit" in message:
                self._hide_progress()
                return _write_output(message)

    def _report_loss(self) -> int:
        text = "error: the local gateway ended during the call, which may have run"
        print(
            f"{text}\n  hint: Run the command again; without a local gateway it starts the server itself.",
            file=sys.stderr,
        )
        return NOT_CONNECTED

    def _show_progress(self, values: Sequence[Any]) -> None:
        from dragoman.cli.render.progress import ProgressLine
        from dragoman.wire.peer import Progress

        if self._progress is None:
            self._progress = ProgressLine()
        self._progress.update(Progress(*values))

    def _hide_progress(self) -> None:
        if self._progress is not None:
            self._progress.__exit__(None, None, None)

    def _send(self, message: Mapping[str, Any]) -> None:
        self._gateway.sendall(json.dumps(message).encode() + b"\n")

    def _receive(self) -> Any:
        line = self._lines.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the local gateway has ended")
        return json.loads(line)


def _terminal() -> dict[str, Any]:
    """The properties of this terminal that affect the output."""
    try:
        columns = int(os.environ.get("COLUMNS", "")) or None
    except ValueError:
        columns = None
    for descriptor in (1, 2, 0):
        try:
            columns = columns or os.get_terminal_size(descriptor).columns
        except OSError:
            continue
    return {
        "terminals": [sys.stdout.isatty(), sys.stderr.isatty()],
        "columns": columns or 80,
        "plain": bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb",
        "animated": is_animated(sys.stderr),
    }


def _write_output(message: Mapping[str, Any]) -> int:
    """Writes the output of the command. Returns the exit code."""
    for is_error, text in message["output"]:
        stream = sys.stderr if is_error else sys.stdout
        stream.write(text)
        stream.flush()
    return message["exit"]


def _answer(message: Mapping[str, Any], *, yes: bool) -> dict[str, Any]:
    """Asks the person in this terminal, like a command that starts the server itself."""
    import asyncio

    from dragoman.cli.local_gateway.questions import ask
    from dragoman.interaction import NoInteraction

    try:
        return {"answer": asyncio.run(ask(message["question"], message["value"], yes=yes))}
    except NoInteraction as refusal:
        return {"refused": str(refusal)}
