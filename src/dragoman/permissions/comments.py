"""Finds the words of a pattern in a text where comments of SQL separate them. Pure.

Where a comment begins depends on the strings before it, and databases read strings differently. So the text
is not read from its beginning: from each place where the first word is found, everything that a database may
skip is skipped, and the next word has to follow. All readings of a comment are tried: that it ends at the
first `*/`, that comments are nested (PostgreSQL), and that its content is executed (MySQL: `/*! … */`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

SCAN_LIMIT: Final = 4_000_000
"""How many characters of comments are scanned for one word sequence."""

_BLANKS = re.compile(r"\s+")
_MARKS = re.compile(r"/\*|\*/")
_EXECUTED = re.compile(r"/\*m?!\d*", re.IGNORECASE)


class TooManyComments(Exception):
    """The comments of a text exceed the limit."""


def may_have_comments(text: str) -> bool:
    return "/*" in text or "--" in text or "#" in text


def without_comments_between(words: str, text: str) -> str:
    """The text with these words, separated by single blanks, in each place where blanks and comments separate
    them. `TooManyComments` if that takes too long."""
    first, *others = words.split()
    return "".join(_Search(text, first, others, words).pieces())


class _Search:
    def __init__(self, text: str, first: str, others: list[str], written: str) -> None:
        self._text = text
        self._first = first
        self._others = others
        self._written = written
        self._left = SCAN_LIMIT

    def pieces(self) -> Iterator[str]:
        start = 0
        at = self._text.find(self._first)
        while at >= 0:
            end = self._end_of_words(at + len(self._first))
            if end is not None:
                yield self._text[start:at]
                yield self._written
                start = end
            at = self._text.find(self._first, max(start, at + 1))
        yield self._text[start:]

    def _end_of_words(self, at: int) -> int | None:
        """Where the last word ends, if all follow the first, which ends at this position."""
        ends = {at}
        for word in self._others:
            begins = {begin for end in ends for begin in self._after_separators(end)}
            ends = {begin + len(word) for begin in begins if self._text.startswith(word, begin)}
        return min(ends, default=None)

    def _after_separators(self, at: int) -> set[int]:
        found = set[int]()
        todo = [at]
        while todo:
            begin = todo.pop()
            for end in self._ends_of_separator(begin):
                self._left -= 1 + end - begin
                if self._left < 0:
                    raise TooManyComments
                if end not in found:
                    found.add(end)
                    todo.append(end)
        return found

    def _ends_of_separator(self, at: int) -> Iterator[int]:
        text = self._text
        if blanks := _BLANKS.match(text, at):
            yield blanks.end()
        elif text.startswith("/*", at):
            if executed := _EXECUTED.match(text, at):
                yield executed.end()
            yield self._after("*/", at + 2)
            yield self._nested_end(at)
        elif text.startswith("*/", at):
            yield at + 2
        elif text.startswith(("--", "#"), at):
            yield self._after("\n", at)

    def _after(self, mark: str, at: int) -> int:
        found = self._text.find(mark, at)
        return len(self._text) if found < 0 else found + len(mark)

    def _nested_end(self, at: int) -> int:
        depth = 0
        for mark in _MARKS.finditer(self._text, at):
            depth += 1 if mark[0] == "/*" else -1
            if not depth:
                return mark.end()
        return len(self._text)
