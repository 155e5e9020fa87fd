"""What servers say in words, as it is kept: titles and descriptions. Pure.

I own: how long they may be, and that what is no text counts as not said. Cleaning is `dragoman.cleaning`'s.
"""

from __future__ import annotations

from typing import Any, Final

from dragoman.cleaning import for_model

DESCRIPTION_LIMIT: Final = 2048
"""Of descriptions, and of a server's instructions."""
TITLE_LIMIT: Final = 200


def text(value: Any, limit: int) -> str:
    return for_model(value, limit) if isinstance(value, str) else ""
