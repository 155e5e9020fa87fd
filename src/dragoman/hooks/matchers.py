"""Compares names with the matchers of hooks. Pure.

A missing matcher, `*` and the empty text match every name. A text that consists of letters, digits,
`_ - . * |` and characters beyond ASCII is a list of alternatives in which `*` (also written `.*`) matches
any run of characters, and blanks around `|` are ignored.
Everything else is a regular expression that must match the whole name.

Calling a matcher compares one name exactly. `may_mean` compares like a deny rule: it ignores letter case and
characters that tool names cannot have, and reads a regular expression as a list of names as well, also one
with commas or in quotes, or as the name in a permission rule. It takes all names of a tool, folded.

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
from dragoman.names import RESERVED, plain
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
_SEPARATOR: Final = re.compile(r"\s*[|,;]\s*|\s+(?:or\s+)?(?=mcp__)", re.IGNORECASE)
_NAME: Final = re.compile(
    r"""[\^/'"`\[]*(?P<name>[\w*-][\w.*-]*)[\]'"`/$]*|(?P<of_rule>[\w*-]+)\([^()]*[\s=][^()]*\)"""
)
"""A name, perhaps between quotes or slashes, and a permission rule with conditions: no expression that can
match a name has blanks or `=` between its parentheses."""
_OF_EXPRESSIONS: Final = re.compile(r"[\\()\[\]{}?+^$]")
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


def _names_meant(text: str) -> str:
    """The names that a matcher probably means which can match no name as it is written: separated by commas,
    in quotes, or of a permission rule. Empty for a proper expression."""
    parts = [text] if _NAME.fullmatch(text) else _SEPARATOR.split(text)
    found = [_NAME.fullmatch(part) for part in parts if part]
    names = [each["name"] or each["of_rule"] for each in found if each is not None]
    return "|".join(names) if len(names) == len(found) else ""


def listed_names(text: str) -> tuple[str, ...]:
    """The names that a matcher lists, with `*` for any characters; none for an expression. Leaves out names
    that a tool may have as its server spells it."""
    text = _names_meant(text.strip()) or text
    if _OF_EXPRESSIONS.search(text):
        return ()
    names = (_STARS.sub("*", each.strip()) for each in text.split("|"))
    return tuple(name for name in names if name and not _may_be_as_spelled(name))


def _may_be_as_spelled(name: str) -> bool:
    pieces = "*".join(plain(fold(piece)) for piece in name.split("*"))
    return pieces.startswith(RESERVED) and "__" in pieces[len(RESERVED) :]


def _expression(text: str) -> Matcher:
    import jsonschema_rs  # only regular expressions need it

    def compiled(pattern: str) -> Test:
        return jsonschema_rs.validator_for(
            {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": pattern},
            pattern_options=jsonschema_rs.RegexOptions(),
        ).is_valid

    by_list, meant = _listed(_SPACED_BAR.sub("|", text)), _listed(_names_meant(text))
    try:
        compiled(text)  # alone first: `a)|(b` would break out of the group
        exact, loose = compiled(f"^(?:{text})$"), compiled(f"(?i)^(?:{text})$")
        folded = _BEYOND_ASCII.sub(lambda found: re.escape(fold(found.group())), text)
        by_folded = loose if text.isascii() else compiled(f"(?i)^(?:{folded})$")

        def any_form(name: str) -> bool:
            # A class such as `[öü]` matches only the composed form of a name. As a list: in `mcp__@a/b__*`
            # and `mcp__c++` the name of a server is written as it is.
            forms = (name, normalize("NFC", name))
            return by_folded(name) or any(map(loose, forms)) or by_list.loose(name) or meant.loose(name)

        def as_written(name: str) -> bool:
            return name == text or exact(name)

        return Matcher(as_written, any_form)
    except (jsonschema_rs.ValidationError, ValueError):
        raise BadMatcher(
            f"the matcher {one_line(text, 60)} is no regular expression that can be used "
            "(look-around and back-references cannot)"
        ) from None
