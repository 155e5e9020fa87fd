"""Compares names with the matchers of hooks. Pure.

A missing matcher, `*` and the empty text match every name. A text that consists of letters, digits,
`_ - . * |` and characters beyond ASCII is a list of alternatives in which `*` (also written `.*`) matches
any run of characters, and blanks around `|` are ignored.
Everything else is a regular expression that must match the whole name.

Calling a matcher compares one name exactly. `may_mean` compares like a deny rule: it ignores letter case and
characters that tool names cannot have. It takes all names of a tool, folded.

Servers choose the names, and a matcher such as `(a+)+b` would let a server block a host whose engine for
regular expressions backtracks. They therefore run in linear time, in the engine that validates arguments; it
has no look-around and no back-references.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple
from unicodedata import normalize

from dragoman.cleaning import fold, one_line
from dragoman.names import plain
from dragoman.wildcards import Pieces, fits

LIMIT_CHARACTERS: Final = 10_000

Test = Callable[[str], bool]


class Matcher(NamedTuple):
    exact: Test
    loose: Test
    """The matcher for folded names."""

    def __call__(self, name: str) -> bool:
        return self.exact(name)

    def may_mean(self, names: Iterable[str]) -> bool:
        """Whether one of the names, all of them folded, matches if letter case is ignored."""
        return any(map(self.loose, names))


_PLAIN: Final = re.compile(r"[A-Za-z0-9_.*|\-\x80-\U0010ffff]*")
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_SPACED_BAR: Final = re.compile(r"\s*\|\s*")
_STARS: Final = re.compile(r"\.?\*(?:\.?\*)*")


class BadMatcher(ValueError):
    """A matcher that cannot be parsed; the text says why."""


def _always(name: str) -> bool:
    return True


EVERYTHING: Final = Matcher(_always, _always)


def parse(text: str) -> Matcher:
    """Parses a matcher. Raises `BadMatcher`."""
    if len(text) > LIMIT_CHARACTERS:
        raise BadMatcher(f"a matcher may have {LIMIT_CHARACTERS} characters, this one has {len(text)}")
    text = text.strip()
    if _PLAIN.fullmatch(unspaced := _SPACED_BAR.sub("|", text)):
        text = unspaced  # names have no blanks: those around alternatives are only for readability
    if text in ("", "*", ".*"):
        return EVERYTHING
    return _listed(text) if _PLAIN.fullmatch(text) else _expression(text)


def _listed(text: str) -> Matcher:
    exact = [tuple(_STARS.split(each)) for each in text.split("|") if each]
    folded = [tuple(map(fold, pieces)) for pieces in exact]
    plainly = [tuple(map(plain, pieces)) for pieces in folded]
    return Matcher(partial(_fits_one, exact), partial(_fits_one, [*folded, *plainly]))


def _fits_one(patterns: list[Pieces], name: str) -> bool:
    return any(fits(pieces, name) for pieces in patterns)


def _expression(text: str) -> Matcher:
    import jsonschema_rs  # only regular expressions need it

    def compiled(pattern: str) -> Test:
        return jsonschema_rs.validator_for(
            {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": pattern},
            pattern_options=jsonschema_rs.RegexOptions(),
        ).is_valid

    try:
        compiled(text)  # alone first: `a)|(b` would break out of the group
        exact, loose = compiled(f"^(?:{text})$"), compiled(f"(?i)^(?:{text})$")
        if text.isascii():
            return Matcher(exact, loose)
        folded = _BEYOND_ASCII.sub(lambda found: re.escape(fold(found.group())), text)
        by_folded = compiled(f"(?i)^(?:{folded})$")

        def any_form(name: str) -> bool:
            # A class such as `[öü]` matches only the composed form of a name.
            return by_folded(name) or loose(name) or loose(normalize("NFC", name))

        return Matcher(exact, any_form)
    except (jsonschema_rs.ValidationError, ValueError):
        raise BadMatcher(
            f"the matcher {one_line(text, 60)} is no regular expression that can be used "
            "(look-around and back-references cannot)"
        ) from None
