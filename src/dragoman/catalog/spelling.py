"""Finds the known words that are most similar to an unknown word. Pure.

`Vocabulary` indexes terms by the pairs of letters that they contain, and computes how similar two words are.
The number of terms, their length and the number of terms that are compared in detail are limited.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

TERM_LIMIT: Final = 50_000
LENGTH_LIMIT: Final = 20
COMPARED_TERMS: Final = 24
LIKE_ENOUGH: Final = 0.6
SPLIT_LIKENESS: Final = 0.7


class Vocabulary:
    """Known terms, and which of them are near a word."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = frozenset(known)
        self._by_pair: defaultdict[str, list[str]] = defaultdict(list)
        usable = sorted(term for term in self._known if 3 <= len(term) <= LENGTH_LIMIT and term.isalpha())
        for term in usable[:TERM_LIMIT]:
            for pair in _pairs(term):
                self._by_pair[pair].append(term)

    def near(self, word: str) -> dict[str, float]:
        """Known terms that an unknown word may mean, and how likely."""
        if not 4 <= len(word) <= LENGTH_LIMIT or not word.isalpha():
            return {}
        if halves := self._halves(word):
            return halves
        shared = Counter[str]()
        for pair in _pairs(word):
            shared.update(self._by_pair.get(pair, ()))
        enough = 0.5 * (len(word) + 1)
        candidates = ((count, term) for term, count in shared.items() if count >= enough)
        likely = [(_likeness(word, term), term) for _, term in heapq.nlargest(COMPARED_TERMS, candidates)]
        return {term: likeness for likeness, term in heapq.nlargest(3, likely) if likeness >= LIKE_ENOUGH}

    def _halves(self, word: str) -> dict[str, float]:
        """`autoreply` is `auto` and `reply`."""
        for at in range(3, len(word) - 2):
            if word[:at] in self._known and word[at:] in self._known:
                return {word[:at]: SPLIT_LIKENESS, word[at:]: SPLIT_LIKENESS}
        return {}


def _likeness(word: str, term: str) -> float:
    """The similarity of two words: 1 for equal words, 0 for words with nothing in common. A word is similar
    to its beginning."""
    shorter, longer = sorted((len(word), len(term)))
    if term.startswith(word) or (word.startswith(term) and len(term) > 3):
        return 0.9 * (shorter / longer) ** 0.5
    first_differs = word[0] != term[0]  # the first letter is rarely wrong
    return max(0.0, 1 - 1.2 * distance(word, term) / longer - 0.1 * first_differs)


def distance(one: str, other: str) -> int:
    """How many letters must be changed, added, dropped or swapped with their neighbour."""
    older: list[int] = []
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, counterpart in enumerate(other, 1):
            least = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != counterpart))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == counterpart:
                least = min(least, older[j - 2] + 1)
            row.append(least)
    return row[-1]


def _pairs(word: str) -> set[str]:
    return set(map(str.__add__, f"^{word}", f"{word}$"))
