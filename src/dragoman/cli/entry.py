"""The start of the `dragoman` command. For a call that a local gateway makes, nothing else is loaded."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:2] == ["call"]:
        from dragoman.cli.warm.client import call

        code = call(sys.argv[2:])
        if code is not None:
            sys.exit(code)
    from dragoman.cli.main import main as run

    run()
