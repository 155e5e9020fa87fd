"""The group `dragoman auth`."""

from __future__ import annotations

from typing import Final

from dragoman.cli.main import LazyGroup

COMMANDS: Final = {
    "status": "List the servers that take a sign-in, and the state of each.",
    "logout": "Sign out at the company's identity provider.",
}

command = LazyGroup(
    "auth",
    table=COMMANDS,
    package=__name__,
    help="Sign-ins. `dragoman mcp login` and `logout` change them.",
)
