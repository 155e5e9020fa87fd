"""Splits text into the words by which it is searched. Pure.

Decides how names and sentences are split, which words count as the same (endings are dropped, abbreviations
are expanded), and which are synonyms. `search.py` uses the words.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Final

WORD_LIMIT: Final = 32
"""The maximum length of a word that is compared; a longer run of letters is not a word of a language."""
REPEATED_LIMIT: Final = 40
"""Texts up to this length are cached: many tools have the same parameters."""

_SIGNS = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
# Letters and digits are separated; an upper-case letter after a lower-case one begins a word, and so does the
# last of several upper-case letters before a lower-case one (`HTTPServer`). Scripts without spaces are split
# into single characters.
_PIECE = re.compile(f"[{_SIGNS}]|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\\W\\d_a-zA-Z{_SIGNS}]+")

_WEAK = """
a all an and any are as at be been by can could do does for from get had has have how i if in into is it its
me my new of on or our please should so some somebody something than that the their them then there these this
those to tool tools us use using want was we were what when where which will with would you your
"""
WEAK: Final = frozenset(_WEAK.split())
"""Stop words: searched only if the query has no others. `who` is not among them, because it finds the right
tools."""

_SHORT: Final = {
    "app": "application",
    "apps": "application",
    "config": "configuration",
    "db": "database",
    "dir": "directory",
    "dm": "direct message",
    "doc": "document",
    "docs": "document",
    "env": "environment",
    "info": "information",
    "k8s": "kubernetes",
    "mail": "email",
    "mails": "email",
    "mr": "merge request",
    "msg": "message",
    "org": "organization",
    "organisation": "organization",
    "pr": "pull request",
    "prs": "pull request",
    "repo": "repository",
    "repos": "repository",
}

_ALIKE: Final = """
create add make open insert write | delete remove erase destroy drop | update edit change modify set
get read show fetch retrieve view display | list show | search find look query | send post share
start run launch trigger begin execute | stop end halt abort terminate | cancel abort revoke
finish complete close resolve done | copy duplicate clone | combine merge join | rename move | assign give
allow permit approve accept | reject decline deny refuse | block ban | mute silence snooze | schedule plan
notify tell alert remind | reply answer respond | remember memory store save | build compile
shrink compress resize smaller | buy purchase order | refund return | talk speak speech | phone call dial
issue ticket | task todo | error exception failure | history log | report statistics analytics
picture image photo | song track music | film movie video | graph chart diagram | text word
person user member people | colleague teammate member | employee worker staff | customer client buyer
company organization business | machine server host instance | website site | web internet online
meeting appointment event | vacation holiday leave | chat conversation | channel room | folder directory
invoice bill | money payment | price cost | stock share | shop store | free available | route direction way
password credential
"""
"""Groups of synonyms in the language of tools, separated by bars."""


def words(text: str) -> list[str]:
    """The words of a name or sentence, in lower case."""
    return [piece[:WORD_LIMIT].lower() for piece in _pieces(text)]


def terms(text: str) -> tuple[str, ...]:
    """The words without their endings, as they are indexed."""
    return _remembered_terms(text) if len(text) <= REPEATED_LIMIT else _terms(text)


def _terms(text: str) -> tuple[str, ...]:
    return tuple([term for piece in _pieces(text) for term in _terms_of(piece)])


_remembered_terms = lru_cache(maxsize=8000)(_terms)


@lru_cache(maxsize=8000)
def _terms_of(piece: str) -> tuple[str, ...]:
    word = piece[:WORD_LIMIT].lower()
    return tuple([stem(part) for part in _SHORT.get(word, word).split()])


def _pieces(text: str) -> list[str]:
    return _PIECE.findall(text.replace("'s ", " ") if "'" in text else text)


def stem(word: str) -> str:
    """The word without the endings that make a plural, a past or a noun of a verb."""
    if len(word) <= 3 or not word.isascii():
        return word
    word = _singular(word)
    for ending, shortest in (("ing", 6), ("ed", 5), ("ment", 7), ("ion", 7)):
        if word.endswith(ending) and len(word) >= shortest:
            return _bare(word[: -len(ending)])
    return _without_e(word)


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word[:-1] if word[-1] == "s" and word[-2] not in "sui" else word


def _bare(word: str) -> str:
    """`stopp` → `stop`, `merge` → `merg`."""
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        return word[:-1]
    return _without_e(word)


def _without_e(word: str) -> str:
    return word[:-1] if word[-1] == "e" and len(word) > 3 else word


def alike(term: str) -> frozenset[str]:
    """Other terms that may mean the same."""
    return _groups().get(term, frozenset())


@cache
def _groups() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for group in _ALIKE.replace("\n", "|").split("|"):
        members = frozenset(stem(word) for word in group.split())
        for one in members:
            found[one] = found.get(one, frozenset()) | (members - {one})
    return found
