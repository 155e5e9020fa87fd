"""Types for names, the characters that models take, and what a prohibition of a server by its name means.

Distinguishes the name that a server gives a tool (`WireToolName`) from the name that a model uses
(`QualifiedName`), so that confusing them is a type error. `catalog/naming.py` converts one to the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NewType

from dragoman.cleaning import fold, without_invisible
from dragoman.wildcards import Pieces, fits

ServerName = NewType("ServerName", str)
"""The key of an entry in configuration. Unique in a host; chosen by the person, not the server."""

WireToolName = NewType("WireToolName", str)
"""A tool's name exactly as its server spells it."""

QualifiedName = NewType("QualifiedName", str)
"""A tool's name as models and people use it: `mcp__<server>__<tool>`."""

RESERVED: Final = "mcp__"
"""How every name of a server's thing begins, and no other name may."""

_BETWEEN = re.compile(r"[,;|\n]")
_AROUND: Final = "^$\"'`/ "
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")


def plain(name: str) -> str:
    """The name in the characters that model APIs take."""
    return _FORBIDDEN.sub("_", name)


def ways_to_write(name: str) -> frozenset[str]:
    """The name as it is, as it looks (without invisible characters and blanks around it, or only behind it,
    where a matcher has none), and each in plain characters."""
    ended = without_invisible(fold(name)).rstrip()
    ways = (name, ended, ended.strip())
    return frozenset((*ways, *map(plain, ways)))


def may_mean_server(written: str, name: str) -> bool:
    """Whether what a list of prohibited servers says may mean the server. `*` stands for any characters.

    Letter case, look-alike and invisible characters and blanks around a name make no difference, as in a deny
    rule; the form of a rule (`mcp__server`), several names with commas between them, quotes and the signs of
    regular expressions count, too.
    """
    exact, patterns = _meanings(written)
    forms = _forms(name)
    return not exact.isdisjoint(forms) or any(fits(each, form) for each in patterns for form in forms)


@lru_cache(maxsize=8192)
def _forms(name: str) -> frozenset[str]:
    folded = {fold(way) for way in ways_to_write(name)}
    return frozenset((*folded, *map(plain, folded)))


@lru_cache(maxsize=8192)
def _meanings(written: str) -> tuple[frozenset[str], tuple[Pieces, ...]]:
    """Names, and patterns."""
    texts = {fold(text).strip() for text in (written, *_BETWEEN.split(written))}
    texts |= {text.strip(_AROUND).replace(".*", "*").replace("?", "*") for text in texts}
    texts |= {text.removeprefix(RESERVED).removesuffix("__*") for text in texts if text.startswith(RESERVED)}
    pieces = {tuple(text.split("*")) for text in texts if text}
    pieces |= {tuple(map(plain, each)) for each in pieces}
    exact = frozenset(each[0] for each in pieces if len(each) == 1)
    return exact, tuple(each for each in pieces if len(each) > 1)


class ProhibitedNames:
    """Lists of names that switch servers off, and who says so. A name that is some server's own by the letter
    means only that one; every other name means whatever it may mean."""

    def __init__(self, sources: Mapping[str, str], servers: Iterable[str]) -> None:
        """`sources`: name as written → who says so; `servers`: all that are configured."""
        self._sources = sources
        own = sources.keys() & set(servers)
        self._loose = [written for written in sources if written not in own]

    def meaning(self, name: str) -> list[str]:
        """The names as written that mean this server."""
        exact = [name] if name in self._sources else []
        return [*exact, *(each for each in self._loose if each != name and may_mean_server(each, name))]

    def get(self, name: str) -> str | None:
        """Who switches this server off."""
        return next((self._sources[each] for each in self.meaning(name)), None)
