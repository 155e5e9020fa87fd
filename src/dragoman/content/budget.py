"""Decides whether a text fits a model's context, and where a text that does not is cut. Pure.

Tokens are estimated only where the length alone does not decide.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dragoman.cleaning import cut
from dragoman.content.tokens import MOST_PER_CHARACTER, estimate

NOTE_TOKENS: Final = 400
"""The space that is reserved for the note about a cut."""


class ResultLimits(Struct, frozen=True):
    """The maximum size of a result that a model is given whole, and the sizes of the parts it is given of a
    larger one."""

    characters: int = 100_000
    tokens: int = 25_000
    head_characters: int = 8_000
    tail_characters: int = 2_000


def fits(text: str, limits: ResultLimits) -> bool:
    if len(text) > limits.characters:
        return False
    return len(text) * MOST_PER_CHARACTER <= limits.tokens or estimate(text) <= limits.tokens


def head_of(text: str, limits: ResultLimits) -> str:
    """The beginning of the text; it ends at the end of a line if that loses little."""
    text = _within(text[: limits.head_characters], limits.tokens // 2)
    end = text.rfind("\n", len(text) * 3 // 4)
    return text if end < 0 else text[:end]


def tail_of(text: str, limits: ResultLimits) -> str:
    """The end of the text; it begins at the start of a line if that loses little."""
    text = _within(text[-limits.tail_characters :], limits.tokens // 8, from_end=True)
    start = text.find("\n", 0, len(text) // 4)
    return text if start < 0 else text[start + 1 :]


def cut_to_fit(text: str, limits: ResultLimits, beyond: int = 0) -> str:
    """As much of the beginning as fits, with a note of how much is missing. `beyond`: further characters that
    are not in the text given."""
    kept = _within(text[: limits.characters], max(1, limits.tokens - NOTE_TOKENS))
    return cut(text, len(kept), beyond)


def _within(text: str, tokens: int, *, from_end: bool = False) -> str:
    """The longest beginning that is estimated at this many tokens, found in a few steps."""
    while text and len(text) * MOST_PER_CHARACTER > tokens and (taken := estimate(text)) > tokens:
        size = min(len(text) - 1, len(text) * tokens // taken)
        text = text[len(text) - size :] if from_end else text[:size]
    return text
