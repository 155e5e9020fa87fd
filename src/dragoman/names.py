"""Types for names, the characters that model APIs accept in names, the meaning of lists of prohibited server
names, and counted nouns.

Distinguishes the name that a server gives a tool (`WireToolName`) from the name that a model uses
(`QualifiedName`), so that confusing them is a type error. `catalog/naming.py` converts one to the other.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Final, NewType

from dragoman.cleaning import fold, one_line, without_invisible
from dragoman.wildcards import Pieces, fits

ServerName = NewType("ServerName", str)
"""The key of an entry in configuration. Unique in a host; chosen by the person, not the server."""

WireToolName = NewType("WireToolName", str)
"""A tool's name exactly as its server spells it."""

QualifiedName = NewType("QualifiedName", str)
"""A tool's name as models and people use it: `mcp__<server>__<tool>`."""

RESERVED: Final = "mcp__"
"""The prefix of the names of all tools and prompts of servers. No other name may begin with it."""

_BETWEEN = re.compile(r"[,;|\n]")
_AROUND: Final = "^$\"'`/ "
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
_SEPARATOR = re.compile(r"[^a-z0-9]+")
_NAMES_TRIED: Final = 60
_NEAR: Final = 0.75
"""The similarity from which a name is treated as a misspelling of another."""


def shell_quoted(name: str) -> str:
    """The name quoted for a shell, whatever characters it has; invisible ones are shown as escapes."""
    quoted = one_line(shlex.quote(name))
    return f"-- {quoted}" if name.startswith("-") else quoted


def plain(name: str) -> str:
    """The name in the characters that model APIs accept."""
    return _FORBIDDEN.sub("_", name)


def ways_to_write(name: str) -> frozenset[str]:
    """The forms of the name: as it is, without invisible characters and the blanks around it, without those
    and only the blanks after it (for matchers, which have none there), and each of these in plain
    characters."""
    ended = without_invisible(fold(name)).rstrip()
    ways = (name, ended, ended.strip())
    return frozenset((*ways, *map(plain, ways)))


def may_mean_server(written: str, name: str) -> bool:
    """Whether an item of a list of prohibited servers may mean the server. `*` matches any characters.

    Letter case, look-alike and invisible characters and blanks around a name make no difference, as in a deny
    rule; the form of a rule (`mcp__server`), several names with commas between them, quotes and the signs of
    regular expressions are understood, too. For several names with blanks between them, see `separate_names`.
    """
    exact, patterns = _meanings(written)
    forms = _forms(name)
    return not exact.isdisjoint(forms) or any(fits(each, form) for each in patterns for form in forms)


@lru_cache(maxsize=8192)
def _forms(name: str) -> frozenset[str]:
    folded = {fold(way) for way in ways_to_write(name)}
    return frozenset((*folded, *map(plain, folded)))


def names_of_server(name: str) -> frozenset[str]:
    """Every name, folded, by which a prohibition may name the server, also in the form of a rule."""
    forms = _forms(name)
    return frozenset((*forms, *(f"{RESERVED}{form}{end}" for form in forms for end in ("", "__"))))


@lru_cache(maxsize=8192)
def _meanings(written: str) -> tuple[frozenset[str], tuple[Pieces, ...]]:
    """The names and the patterns that an item may mean."""
    texts = {fold(text).strip() for text in (written, *_BETWEEN.split(written))}
    texts |= {text.strip(_AROUND).rstrip("@:").replace(".*", "*").replace("?", "*") for text in texts}
    texts |= {text.removeprefix(RESERVED).removesuffix("__*") for text in texts if text.startswith(RESERVED)}
    pieces = {tuple(text.split("*")) for text in texts if text}
    pieces |= {tuple(map(plain, each)) for each in pieces}
    exact = frozenset(each[0] for each in pieces if len(each) == 1)
    return exact, tuple(each for each in pieces if len(each) > 1)


def separate_names(written: str, servers: Iterable[str]) -> list[str]:
    """The items of a list of prohibited servers. An item that means none of the servers is also split into
    its words; it is not split otherwise, because a name may contain blanks."""
    words = written.split()
    if len(words) < 2 or any(may_mean_server(written, name) for name in servers):
        return [written]
    return [written, *(word for word in words if word.strip("_,;|"))]


def nearest_server(written: str, servers: Collection[str]) -> str | None:
    """The server that a misspelled name was probably meant for. None if there is none, if the name means a
    server, and for patterns, which may be written for servers that are added later.

    Either the name has the server's name as its first part (`box.echo`), or both are spelled nearly alike.
    """
    exact, patterns = _meanings(written)
    forms = {form: name for name in servers for form in _forms(name)}
    if patterns or not exact.isdisjoint(forms):
        return None
    for text in exact:
        for end in (found.start() for found in _SEPARATOR.finditer(text)):
            if name := forms.get(text[:end]):
                return name
    import difflib  # only for a name that is not known

    few = list(forms)[:_NAMES_TRIED]  # a repository may have many, and each takes time
    near = (difflib.get_close_matches(text[:100], few, 1, _NEAR) for text in sorted(exact)[:2])
    return next((forms[found[0]] for found in near if found), None)


class ProhibitedNames:
    """Names that disable servers, with their sources. A name that is exactly a server's own means only that
    server; any other name means every server that it may mean."""

    def __init__(
        self, sources: Mapping[str, str], servers: Iterable[str], exact: Collection[str] = ()
    ) -> None:
        """`sources`: name as written → its source; `servers`: those whose names the person, the program or
        the administrator chose; `exact`: further names that mean one server alone."""
        names = set(servers)
        self._sources = sources
        own = sources.keys() & {*names, *exact}
        self._loose = {written: separate_names(written, names) for written in sources if written not in own}

    def meaning(self, name: str) -> list[str]:
        """The names as written that mean this server."""
        exact = [name] if name in self._sources else []
        loose = (written for written in self._loose if written != name)
        return [*exact, *(each for each in loose if self._may_mean(each, name))]

    def _may_mean(self, written: str, name: str) -> bool:
        return any(may_mean_server(each, name) for each in self._loose[written])

    def get(self, name: str) -> str | None:
        """The source that disables this server."""
        return next((self._sources[each] for each in self.meaning(name)), None)


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 tool`, `2 tools`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def letters_of(key: str) -> str:
    """A key in a form that ignores case, blanks, punctuation and forms of letters."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", key))).casefold()
