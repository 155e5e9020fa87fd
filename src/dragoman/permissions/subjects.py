"""Decides which tools a rule applies to. Pure.

Compares the subject of a rule with the names of a tool. A deny or an ask applies to a tool by every name that
the tool has or could have; an allow only by the name that it has now, and only to exactly the named server:
`mcp__a` is not a prefix of `mcp__a__b`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from msgspec import Struct

from dragoman.catalog.naming import HASH_LENGTHS, prefix, qualify
from dragoman.cleaning import one_line
from dragoman.names import RESERVED, nearest_server, plain, ways_to_write
from dragoman.permissions.patterns import Glob, fold
from dragoman.wildcards import Pieces, fits

_AROUND_SEPARATOR = re.compile(r"\s*__\s*")
_OTHER_SEPARATOR = re.compile(r"[\s./]+")
_SEPARATORS_TRIED: Final = 8
_WORDS_FOR_ALL: Final = frozenset({"all", "any", "everything"})


class Subject(Struct, frozen=True):
    text: str
    glob: Glob
    loosely: tuple[Pieces, ...]
    """The possible meanings for a deny or an ask, folded: each reading, also in the characters of tool
    names."""

    @staticmethod
    def of(text: str) -> Subject:
        glob = Glob.plainly(text)
        readings = dict.fromkeys((glob.folded, *(tuple(each.split("*")) for each in _readings(text))))
        in_plain = (tuple(map(plain, each)) for each in readings)
        return Subject(text, glob, tuple(dict.fromkeys((*readings, *in_plain))))

    def may_mean(self, tool: str, server: str, wire_name: str) -> bool:
        """For deny and ask: whether the subject means the tool by any of its names."""
        names = all_names(tool, server, wire_name)
        return any(fits(reading, name) for reading in self.loosely for name in names)

    def means(self, tool: str, server: str, wire_name: str) -> bool:
        """For allow: whether the subject means the tool by its current name, or as a tool of exactly this
        server."""
        if self.text in (tool, "*"):
            return True
        if not tool.startswith(RESERVED):
            return not server and not self.text.startswith(RESERVED) and self.glob.fits_carefully(tool)
        if not self.text.startswith(RESERVED):
            return False
        body = self.text[len(RESERVED) :]
        return body == "*" or (bool(server) and _means_some(body, tool, server, wire_name))

    def meant_instead(self, servers: Collection[str]) -> Meant | None:
        """For a deny or an ask: the subject that was probably meant, if this one names no configured server,
        but is similar to one. None for patterns, which may be written for servers that are added later."""
        folded = fold(self.text)
        if folded in _WORDS_FOR_ALL:
            return Meant("*", True)
        if "*" in self.text or not servers:
            return None
        if not folded.startswith(RESERVED):
            name = next((each for each in servers if folded in _server_names(each)), None)
            return None if name is None or folded == "bash" else Meant(f"{RESERVED}{name}", True)
        if any(_names_server(reading, each) for each in servers for reading in self.loosely):
            return None
        of, separator, tool = folded[len(RESERVED) :].partition("__")
        if of in _WORDS_FOR_ALL and not separator:
            return Meant(f"{RESERVED}*", True)
        name = nearest_server(of, servers)
        if name is None:
            return None
        if separator:
            return Meant(f"{RESERVED}{name}__{tool}", False)
        rest = of.removeprefix(fold(name))
        if rest != of and (tool := rest.lstrip("_-")) != rest:  # `mcp__box_echo`
            return Meant(f"{RESERVED}{name}__{tool}", True)
        return Meant(f"{RESERVED}{name}", False)

    def why_without_effect(self, servers: Collection[str]) -> str | None:
        """For a deny or an ask: a problem text if it names no configured server, but is similar to one."""
        meant = self.meant_instead(servers)
        if meant is None:
            return None
        is_bare = not fold(self.text).startswith(RESERVED)
        reason = (
            f"the names of servers' tools begin with {RESERVED}" if is_bare else "no server has that name"
        )
        return f"{reason} (did you mean {one_line(meant.subject, 200)}?)"


class Meant(NamedTuple):
    """The probable meaning of a subject."""

    subject: str
    is_certain: bool
    """Whether it is certain enough to be applied."""


def _names_server(reading: Pieces, server: str) -> bool:
    return any(f"{reading[0]}__".startswith(f"{name}__") for name in _server_names(server))


@lru_cache(maxsize=8192)
def _server_names(server: str) -> frozenset[str]:
    """The prefixes of the names of the server's tools, folded, with and without `mcp__`."""
    names = {*ways_to_write(server), prefix(server)[len(RESERVED) : -len("__")]}
    folded = {fold(name) for name in names}
    folded |= {plain(name) for name in folded}
    return frozenset(folded | {f"{RESERVED}{name}" for name in folded})


def _readings(text: str) -> Iterator[str]:
    """The possible readings of a subject with blanks around a `__`, another separator in its place, a tool's
    name without `mcp__`, the `.*` of a regular expression, or a version or nothing after an `@`."""
    text = _AROUND_SEPARATOR.sub("__", fold(text))
    yield text
    if ".*" in text:
        yield text.replace(".*", "*")
    before, at, _ = text.rpartition("@")
    if at and before and not before.endswith("__"):  # `mcp__@scope/server` is a name
        yield before
    if not text.startswith(RESERVED):
        if "__" in text and not text.startswith("*"):
            yield f"{RESERVED}{text}"
        elif found := _OTHER_SEPARATOR.search(text):  # no tool of the host has such a name
            yield f"{RESERVED}{text[: found.start()]}__{text[found.end() :]}"
    elif "__" not in text[len(RESERVED) :]:
        for found in islice(_OTHER_SEPARATOR.finditer(text), _SEPARATORS_TRIED):
            yield f"{text[: found.start()]}__{text[found.end() :]}"


def _means_some(body: str, tool: str, server: str, wire_name: str) -> bool:
    """Whether `body`, the text after `mcp__`, means this server, or tools of it that this is one of.

    Where the server's name ends is not written, and each `__` may be the place. A body with one is never a
    whole server's: `mcp__a__b`, meant for the tool `b` of `a`, does not mean a server that is called `a__b`.
    """
    start = prefix(server)
    own = tool[len(start) :] if tool.startswith(start) else None
    has_plain_name = own is not None and own == plain(wire_name)
    if "__" not in body:
        return _means_server(body, server, has_plain_name)
    at = body.find("__")
    while at >= 0:
        of, which = body[:at], body[at + len("__") :]
        if which and _means_tool(which, own) and _means_server(of, server, has_plain_name):
            return True
        at = body.find("__", at + 1)
    return False


def _means_tool(pattern: str, own: str | None) -> bool:
    return pattern == "*" or (own is not None and fits(tuple(pattern.split("*")), own))


def _means_server(pattern: str, server: str, has_plain_name: bool) -> bool:
    """`has_plain_name`: whether the tool has the name it would have if its server were the only one.

    Servers that look alike (`a.b`, `a_b`) begin their tools' names alike, and then a hash ends each name.
    """
    if pattern == server:
        return True
    name = prefix(server)[len(RESERVED) : -len("__")]
    if "*" in pattern:
        return fits(tuple(pattern.split("*")), name)
    return has_plain_name and pattern == name


@lru_cache(maxsize=8192)
def all_names(tool: str, server: str, wire_name: str) -> frozenset[str]:
    """Every name of the tool and of its server, folded, as it is and in plain characters."""
    names = {tool}
    if server or wire_name:
        servers = {f"{RESERVED}{name}" for name in ways_to_write(server)} | {prefix(server)[: -len("__")]}
        names |= servers
        names |= {f"{start}__{end}" for start in servers for end in ways_to_write(wire_name)}
        names |= {qualify(server, wire_name, length) for length in HASH_LENGTHS}
    folded = {fold(name) for name in names}
    return frozenset(folded | {plain(name) for name in folded})
