"""Which hooks an event concerns, by name. Pure.

I own: reading a matcher and matching it. Nothing, `*` and the empty text match everything. A text of nothing
but letters, digits, `_ - . * |` is a list of alternatives in which `*`, also written `.*`, stands for any run
of characters. Everything else is a regular expression that must match the whole name.

Names are chosen by servers, and a matcher such as `(a+)+b` would let one of them stop a host that
backtracks. Regular expressions are therefore run in linear time, by the engine that checks arguments; it has
no look-around and no back-references.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from dragoman.cleaning import one_line

LIMIT_CHARACTERS: Final = 10_000

Matcher = Callable[[str], bool]
"""Whether a name is meant."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.*|\-]*")
_STARS: Final = re.compile(r"\.?\*(?:\.?\*)*")


class BadMatcher(ValueError):
    """A matcher that cannot be read, in words."""


def everything(name: str) -> bool:
    return True


def parse(text: str) -> Matcher:
    """Raises `BadMatcher`."""
    if len(text) > LIMIT_CHARACTERS:
        raise BadMatcher(f"a matcher may have {LIMIT_CHARACTERS} characters, this one has {len(text)}")
    text = text.strip()
    if text in ("", "*", ".*"):
        return everything
    return _listed(text) if _PLAIN.fullmatch(text) else _expression(text)


def _listed(text: str) -> Matcher:
    alternatives = [each for each in text.split("|") if each]
    names = frozenset(each for each in alternatives if "*" not in each)
    patterns = tuple(tuple(_STARS.split(each)) for each in alternatives if "*" in each)
    return lambda name: name in names or any(_fits(pieces, name) for pieces in patterns)


def _fits(pieces: tuple[str, ...], name: str) -> bool:
    """Whether the pieces, with anything between them, make the name."""
    first, *middle, last = pieces
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    place, end = len(first), len(name) - len(last)
    for piece in middle:
        found = name.find(piece, place, end)
        if found < 0:
            return False
        place = found + len(piece)
    return True


def _expression(text: str) -> Matcher:
    import jsonschema_rs  # wanted for regular expressions only

    try:
        # By itself first: `a)|(b` would break out of the group that holds it to the whole name.
        for pattern in (text, f"^(?:{text})$"):
            validator = jsonschema_rs.validator_for(
                {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": pattern},
                pattern_options=jsonschema_rs.RegexOptions(),
            )
    except (jsonschema_rs.ValidationError, ValueError):
        raise BadMatcher(
            f"the matcher {one_line(text, 60)} is no regular expression that can be used "
            "(look-around and back-references cannot)"
        ) from None
    return validator.is_valid
