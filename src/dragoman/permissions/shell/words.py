r"""Parses one word of a shell command as bash does. Pure.

Covers quotes, escapes, and which parts of a word are known before the command runs. A word is accepted only
if every character of it is understood; anything else is `Unclear`. Texts have one character per byte
(Latin-1), as the parser counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from dragoman.permissions.shell.pattern import FILES, GLOB, UNKNOWN

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./^!#\]}\x80-\xff-]+")
_PATTERN = re.compile(r"[*?\[{]")
_VARIABLE = re.compile(
    r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!_-]|\{[A-Za-z_][A-Za-z0-9_]*\}|\{[0-9@*#?$!]\})"
)
_ANSI = re.compile(r"\$'(?:[^'\\]|\\.)*'", re.DOTALL)
_IN_QUOTES = re.compile(r'[^"\\$`]+')
_TILDE_BEFORE: Final = ("", "=", ":")


class Substitutions(NamedTuple):
    """The start of each substitution → its end. Their contents are read separately."""

    commands: Mapping[int, int]
    sums: Mapping[int, int] = {}

    def at(self, place: int) -> tuple[int, str] | None:
        if place in self.commands:
            return self.commands[place], UNKNOWN
        return (self.sums[place], FILES) if place in self.sums else None


class Unclear(Exception):
    """A word is not understood; the text says why."""


def read_word(source: str, start: int, end: int, holes: Substitutions) -> str:
    """The word's text, with `UNKNOWN` for parts that the shell expands."""
    if source[start : start + 1] == "#":
        raise Unclear("a word that begins with #")
    parts: list[str] = []
    at = start
    while at < end:
        is_glob = source[at] in "*?[" and not any(parts)
        at, part = _step(source, at, end, holes, source[at - 1] if at > start else "")
        parts.append(GLOB if is_glob else part)
    if at != end:
        raise Unclear("a word that does not end where it seems to")
    return _decoded("".join(parts))


def _step(source: str, at: int, end: int, holes: Substitutions, before: str) -> tuple[int, str]:
    if hole := holes.at(at):
        return hole
    if match := _PLAIN.match(source, at, end):
        return match.end(), match[0]
    char = source[at]
    if char == "'":
        closing = source.find("'", at + 1, end)
        if closing < 0:
            raise Unclear("a quote that is not closed")
        return closing + 1, source[at + 1 : closing]
    if char == '"':
        return _quoted(source, at + 1, end, holes)
    if char == "\\":
        return _escaped(source, at, end)
    if char == "~":
        return at + 1, FILES if before in _TILDE_BEFORE else char
    if _PATTERN.match(char):
        return at + 1, FILES
    if match := _VARIABLE.match(source, at, end):
        return match.end(), UNKNOWN
    if match := _ANSI.match(source, at, end):
        if "\\" in match[0]:
            # dash knows no $'…': there `\'` ends the quotes, and what follows is another command.
            raise Unclear("a backslash between $' and '")
        return match.end(), UNKNOWN
    raise Unclear(f"{source[at : at + 2]!r} in a word")


def _escaped(source: str, at: int, end: int) -> tuple[int, str]:
    if at + 1 >= end or source[at + 1] == "\n":
        raise Unclear("a line that continues in the middle of a word")
    return at + 2, source[at + 1]


def _quoted(source: str, at: int, end: int, holes: Substitutions) -> tuple[int, str]:
    parts: list[str] = []
    while at < end:
        char = source[at]
        if hole := holes.at(at):
            at, part = hole
        elif char == '"':
            return at + 1, "".join(parts)
        elif match := _IN_QUOTES.match(source, at, end):
            # A substitution may begin inside plain text: the parser counts the blanks before it as a part of
            # it.
            at, part = match.end(), match[0]
        elif char == "\\":
            at, part = _escaped_in_quotes(source, at, end)
        elif match := _VARIABLE.match(source, at, end):
            at, part = match.end(), UNKNOWN
        elif char == "$" and source[at + 1 : at + 2] in ("", " ", '"', "\n", "\t", "/", ".", ","):
            at, part = at + 1, char
        else:
            raise Unclear(f"{source[at : at + 2]!r} in quotes")
        parts.append(part)
    raise Unclear("a quote that is not closed")


def _escaped_in_quotes(source: str, at: int, end: int) -> tuple[int, str]:
    following = source[at + 1 : at + 2]
    if not following or at + 1 >= end:
        raise Unclear("a quote that is not closed")
    if following == "\n":
        return at + 2, ""
    return at + 2, following if following in '"\\$`' else f"\\{following}"


def _decoded(text: str) -> str:
    return text if text.isascii() else text.encode("latin-1").decode(errors="replace")
