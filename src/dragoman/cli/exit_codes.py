"""The exit codes of the command. They are stable: scripts depend on them."""

from __future__ import annotations

from typing import Final

from dragoman import errors

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
CONFIG: Final = 3
NOT_CONNECTED: Final = 4
NOT_FOUND: Final = 5
REFUSED: Final = 6
TIMEOUT: Final = 7
WOULD_ASK: Final = 8
INTERRUPTED: Final = 130

MEANINGS: Final = {
    OK: "success",
    FAILED: "the tool or its server answered with an error; `tools lock --check` found a difference; the "
    "output could not be written",
    USAGE: "the command line is wrong, or the arguments do not fit the tool",
    CONFIG: "the configuration cannot be used: a file that cannot be read, an invalid entry, policy, or no "
    "servers",
    NOT_CONNECTED: "a server that was needed could not be connected, or its connection was lost",
    NOT_FOUND: "there is no server, tool, task, prompt, template or rule of that name, or nothing matches",
    REFUSED: "a rule, a hook or the person does not allow it",
    TIMEOUT: "a connected server did not answer the request in time",
    WOULD_ASK: "`permissions test`: the call would need a permission",
    INTERRUPTED: "interrupted by Ctrl-C, also at a question; `serve`, which is ended in this way, exits with "
    "0",
}
"""The meaning of each code, the same for all commands."""

_BY_ERROR: tuple[tuple[type[errors.DragomanError], int], ...] = (
    (errors.NotFound, NOT_FOUND),
    (errors.ConfigError, CONFIG),
    (errors.UnknownTool, NOT_FOUND),
    (errors.TaskNotFound, NOT_FOUND),
    (errors.InvalidArguments, USAGE),
    (errors.PermissionRefused, REFUSED),
    (errors.UrlNotOpened, REFUSED),
    (errors.CallTimeout, TIMEOUT),
    (errors.ConnectError, NOT_CONNECTED),
    (errors.NotConnected, NOT_CONNECTED),
    (errors.ConnectionLost, NOT_CONNECTED),
)


def for_error(error: errors.DragomanError) -> int:
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), FAILED)
