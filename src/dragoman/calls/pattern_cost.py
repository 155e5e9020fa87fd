"""Estimates how much work the pattern of a schema can cause, from its text. Pure, and linear in the pattern.

The estimate is made before the pattern is compiled. Patterns are matched without backtracking wherever
possible, so a match takes at most the pattern's states times the text's characters; but counted repetitions
multiply the states (`(a{0,100}){0,100}` has ten thousand). Patterns with look-around or back-references are
matched with backtracking, limited to `BACKTRACK_LIMIT` steps; each step may match a part of the pattern
again.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

BACKTRACK_LIMIT: Final = 2000
UNKNOWABLE: Final = 10**9
"""More than anybody grants."""

_TOKEN: Final = re.compile(
    r"\\[pP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\s*(\d*)\s*,?\s*(\d*)\s*\}|.", re.DOTALL
)
_BACKTRACKS: Final = re.compile(r"\(\?(?!:)|\\[1-9kKG]|[*+?}]\+")
_COMMENTED: Final = re.compile(r"\(\?[a-zA-Z]*x")
_COUNT: Final = re.compile(r"\{\s*\d")
_UNICODE_CLASS: Final = 2000
_WIDE_CLASS: Final = 70


class PatternCost(NamedTuple):
    matching: int
    """For each character of a text, in eighths of a check."""
    compiling: int
    """In checks."""


def pattern_cost(pattern: str) -> PatternCost:
    if _COMMENTED.search(pattern):
        return PatternCost(UNKNOWABLE, UNKNOWABLE)
    states, compiling = _sizes(pattern)
    backtracks = _BACKTRACKS.search(pattern) is not None
    return PatternCost(states * BACKTRACK_LIMIT // 2 if backtracks else states, compiling)


def _sizes(pattern: str) -> tuple[int, int]:
    """States, and the work to make them: so far, in the groups around, and of what stands last."""
    states, work, last_states, last_work = 1, 1, 0, 0
    outer: list[tuple[int, int]] = []
    for found in _TOKEN.finditer(pattern):
        token = found.group()
        if _may_mislead(token):
            return UNKNOWABLE, UNKNOWABLE
        if token == "(":
            outer.append((states, work))
            states = work = last_states = last_work = 0
        elif token == ")" and outer:
            last_states, last_work = states, work
            around = outer.pop()
            states, work = states + around[0], work + around[1]
        elif token[0] == "{" and (found[1] or found[2]):
            times = min(max(int(found[1] or 0), int(found[2] or 0), 1), UNKNOWABLE)
            states, work = states + last_states * (times - 1), work + last_work * (times - 1)
            last_states, last_work = last_states * times, last_work * times
        elif token not in _QUANTIFIERS:
            last_states, last_work = 1, _class_work(token)
            states, work = states + 1, work + last_work
    return states + sum(each for each, _ in outer), work + sum(each for _, each in outer)


def _may_mislead(token: str) -> bool:
    """A class without an end, or counts in what may or may not be a class: the scan could be led astray."""
    return token[0] == "[" and (len(token) == 1 or _COUNT.search(token) is not None)


_QUANTIFIERS: Final = frozenset("*+?")


def _class_work(token: str) -> int:
    """What one state of this kind costs to compile: a class of Unicode is a thousand ranges."""
    unicode_classes = token.count("\\p") + token.count("\\P")
    is_wide = token in (".", "\\S", "\\W", "\\D") or token.startswith("[^")
    return 2 + _UNICODE_CLASS * unicode_classes + _WIDE_CLASS * is_wide
