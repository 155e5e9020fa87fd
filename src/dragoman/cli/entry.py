"""The start of the `dragoman` command. For a call through a local gateway, no other module is loaded."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    _open_closed_streams()
    # Characters that the encoding of the terminal lacks are written as escapes.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout.isatty() or sys.stderr.isatty():
        from dragoman.cli.terminal_output import escape_output

        escape_output()
    if sys.argv[1:2] == ["call"]:
        from dragoman.cli.local_gateway.client import call

        code = call(sys.argv[2:])
        if code is not None:
            sys.exit(code)
    from dragoman.cli.main import main as run

    run()


def _open_closed_streams() -> None:
    """Opens the standard streams that were closed when the program was started. Otherwise the next file or
    socket that is opened gets the number of a closed stream, and output goes there."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))
