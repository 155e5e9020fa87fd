"""What the command's exit codes mean. Stable: scripts depend on them."""

from __future__ import annotations

from typing import Final

from dragoman import errors

OK: Final = 0
TOOL_ERROR: Final = 1
"""The tool, or its server, answered with an error."""
USAGE: Final = 2
CONFIG: Final = 3
NOT_CONNECTED: Final = 4
"""A server that was needed could not be reached."""
UNKNOWN_TOOL: Final = 5
REFUSED: Final = 6
TIMEOUT: Final = 7
WOULD_ASK: Final = 8
"""`permissions test`: a person would be asked."""
INTERRUPTED: Final = 130

_BY_ERROR: tuple[tuple[type[errors.DragomanError], int], ...] = (
    (errors.ConfigError, CONFIG),
    (errors.UnknownTool, UNKNOWN_TOOL),
    (errors.InvalidArguments, USAGE),
    (errors.PermissionRefused, REFUSED),
    (errors.CallTimeout, TIMEOUT),
    (errors.ConnectTimeout, TIMEOUT),
    (errors.ConnectError, NOT_CONNECTED),
    (errors.NotConnected, NOT_CONNECTED),
    (errors.ConnectionLost, NOT_CONNECTED),
)


def for_error(error: errors.DragomanError) -> int:
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), TOOL_ERROR)
