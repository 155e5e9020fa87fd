"""What follows when a call came to nothing: the table.

I own: one pure decision. A call is repeated only when that is certainly safe: it never reached the server,
or the tool says that repeating does no harm, by the word of a server the person trusts and where the setting
allows it. In every other case whoever called is told that it may have run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from dragoman.errors import CallError, ConnectionLost, RemoteError
from dragoman.protocol import HEADER_MISMATCH

UNSENT_LIMIT: Final = 3
"""How often a call that never reached its server is tried."""

Reaction = Literal["give up", "repeat", "list again and repeat"]


def react(error: CallError, *, attempt: int, harmless: bool) -> Reaction:
    """`attempt`: how often the call has been tried, this one included."""
    match error:
        case ConnectionLost(may_have_run=False, was_refused=True):
            return "repeat" if attempt == 1 else "give up"
        case ConnectionLost(may_have_run=False) if attempt < UNSENT_LIMIT:
            return "repeat"
        case ConnectionLost() if harmless and attempt == 1:
            return "repeat"
        case RemoteError(remote_code=code, status=400) if code == HEADER_MISMATCH and attempt == 1:
            # The tool's definition has changed since it was listed; the server did not run anything.
            return "list again and repeat"
        case _:
            return "give up"


def is_harmless(annotations: Mapping[str, Any]) -> bool:
    """Whether a tool says of itself that running it twice is as good as once."""
    return annotations.get("readOnlyHint") is True or annotations.get("idempotentHint") is True
