"""Titles and descriptions of servers: their length limits, and the rule that a value that is not text counts
as missing. Pure.

`dragoman.cleaning` cleans the text.
"""

from __future__ import annotations

from typing import Any, Final

from dragoman.cleaning import for_model

DESCRIPTION_LIMIT: Final = 2048
"""The most characters of a description, and of a server's instructions."""
TITLE_LIMIT: Final = 200


def text(value: Any, limit: int) -> str:
    return for_model(value, limit) if isinstance(value, str) else ""
