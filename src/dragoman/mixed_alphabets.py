"""Finds words that look like other words: words that mix alphabets, or use full-width or mathematical
letters. Pure, linear time.

Used for everything that a person is asked about. A word that is entirely in another alphabet is accepted: it
belongs to a language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from dragoman.cleaning import one_line

SHOWN: Final = 5

_WORD: Final = re.compile(r"\w+")
_LATIN: Final = re.compile("[A-Za-z]")
# Greek, Cyrillic and Armenian, Cherokee, more Cyrillic, Greek with accents, Coptic, Lisu, small Cherokee:
# alphabets with letters that look like Latin ones.
_ALIKE: Final = re.compile(
    "[\u0370-\u058f\u13a0-\u13ff\u1c80-\u1c8f\u1f00-\u1fff\u2c80-\u2cff\ua4d0-\ua69f\uab70-\uabbf]"
)
# Variants of Latin letters: full-width and mathematical ones.
_DISGUISED: Final = re.compile("[\uff10-\uff5a\U0001d400-\U0001d7ff]")


def mixed_words(value: Any) -> list[str]:
    """The words that mix alphabets anywhere in the value, including its keys, with the foreign letters
    escaped."""
    found: dict[str, None] = {}
    for text in _texts(value):
        if not text.isascii():
            found.update(dict.fromkeys(word for word in _WORD.findall(text) if _is_mixed(word)))
    words = [one_line(word.encode("ascii", "backslashreplace").decode(), 80) for word in list(found)[:SHOWN]]
    return [*words, f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else words


def _texts(value: Any) -> Iterator[str]:
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            for pair in cast("Mapping[Any, Any]", part).items():
                todo.extend(pair)
        elif isinstance(part, list | tuple):
            todo.extend(cast("list[Any]", part))


def _is_mixed(word: str) -> bool:
    return bool(_DISGUISED.search(word) or (_ALIKE.search(word) and _LATIN.search(word)))
