"""Searches a set of tools. Pure.

Contains the index and the ranking: BM25 over the words of names, titles, descriptions, annotations and
parameters, each field with its own weight. A word that no tool contains is replaced by the most similar known
words. Equal results are ordered by name, so the same query has the same result. The toolbox decides what
is searched and how results are used.

Building takes time and memory linear in the tools, each with a bounded number of words. Only the first words
of a query are used, and each takes time linear in the tools that contain it.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from dragoman.catalog.tools import ServerTool, Tool
from dragoman.catalog.words import WEAK, alike, terms, words

SELECT: Final = "select:"
QUERY_CHARACTERS: Final = 1000
QUERY_WORDS: Final = 24
SELECT_CHARACTERS: Final = 10_000
SELECT_NAMES: Final = 50
RESULT_LIMIT: Final = 50
TEXT_CHARACTERS: Final = 2048
PARAMETER_LIMIT: Final = 50
PARAMETER_CHARACTERS: Final = 120

# The weight of one occurrence of a word, by the field it is in. Recall hardly depends on the exact numbers.
NAME: Final = 4.0
SERVER: Final = 3.0
HINT: Final = 3.0
TITLE: Final = 1.5
DESCRIPTION: Final = 1.5
PARAMETER: Final = 0.5
PARAMETER_TEXT: Final = 0.25

SATURATION: Final = 1.6
"""How soon further occurrences stop counting (BM25's k1)."""
LENGTH: Final = 0.4
"""How much long definitions are ranked lower (BM25's b)."""
JOINED_SHARE: Final = 1.5
"""The weight of two adjacent words that form one word in a name."""
ALIKE: Final = 0.3
"""The weight of a synonym of a word in the query."""
COVERAGE: Final = 0.5
"""The weight of finding all words of a query, instead of one of them often."""


class SelectQuery(Struct, frozen=True):
    """The result of a `select:` query."""

    tools: tuple[Tool, ...]
    unknown: tuple[str, ...]


def select(query: str, tools: Iterable[Tool]) -> SelectQuery | None:
    """The tools that `select:name,name` names; None if the query is not of this form.

    A tool's wire name is accepted if only one tool has it.
    """
    if not query[:100].lstrip().lower().startswith(SELECT):
        return None
    wanted = query[:SELECT_CHARACTERS].partition(":")[2].split(",")
    names = list(dict.fromkeys(name.strip() for name in wanted if name.strip()))[:SELECT_NAMES]
    known = _by_any_name(tools)
    found = {name: known[name][0] for name in names if len(known.get(name, ())) == 1}
    unique = {tool.name: tool for tool in found.values()}
    return SelectQuery(tuple(unique.values()), tuple(name for name in names if name not in found))


def _by_any_name(tools: Iterable[Tool]) -> Mapping[str, list[Tool]]:
    qualified: dict[str, list[Tool]] = {}
    wire: defaultdict[str, list[Tool]] = defaultdict(list)
    for tool in tools:
        qualified[tool.name] = [tool]
        if isinstance(tool, ServerTool):
            wire[tool.wire_name].append(tool)
    return {**wire, **qualified}


class Index:
    """An index of tools by the words that find them."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = list(tools)
        postings: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        lengths: list[float] = []
        for number, tool in enumerate(self._tools):
            weights = weights_of(tool)
            lengths.append(sum(weights.values()))
            for term, weight in weights.items():
                postings[term].append((number, weight))
        self._postings = dict(postings)  # looking for an unknown word must not add it
        mean = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self._norms = [SATURATION * (1 - LENGTH + LENGTH * length / mean) for length in lengths]
        self._spelling = Vocabulary(self._postings)

    def search(self, query: str, *, limit: int = 5, server: str | None = None) -> list[Tool]:
        """The best matches, best first."""
        scores: defaultdict[int, float] = defaultdict(float)
        covered: defaultdict[int, float] = defaultdict(float)
        total = 0.0
        for candidates, share in self._asked(query):
            found = self._found(candidates)
            matters = share * self._rarity(len(found))
            total += matters
            for number, score in found.items():
                scores[number] += share * score
                covered[number] += matters
        ranked = (
            (-score * (covered[number] / total) ** COVERAGE, self._tools[number].name, number)
            for number, score in scores.items()
            if server is None or self._tools[number].server == server
        )
        best = heapq.nsmallest(min(limit, RESULT_LIMIT), ranked)
        return [self._tools[number] for _, _, number in best]

    def _asked(self, query: str) -> Iterator[tuple[Mapping[str, float], float]]:
        """The words of the query, each with the known terms that it may mean and their weights."""
        asked = list(dict.fromkeys(words(query[:QUERY_CHARACTERS])[:QUERY_WORDS]))
        strong = [word for word in asked if word not in WEAK] or asked
        for term in dict.fromkeys(term for word in strong for term in terms(word)):
            if candidates := self._candidates(term):
                yield candidates, 1.0
        for one, other in pairwise(term for word in asked for term in terms(word)):
            for joined in (one + other, other + one):  # `on call` is `oncall`, `log work` a `worklog`
                if joined in self._postings:
                    yield {joined: 1.0}, JOINED_SHARE

    def _candidates(self, term: str) -> Mapping[str, float]:
        known = {other: ALIKE for other in alike(term) if other in self._postings}
        if term in self._postings:
            return known | {term: 1.0}
        return known | self._spelling.near(term)

    def _found(self, candidates: Mapping[str, float]) -> dict[int, float]:
        """The tools that one word of a query finds. A tool's score comes from its best matching term."""
        best: dict[int, float] = {}
        for term, likeness in candidates.items():
            postings = self._postings[term]
            factor = likeness * self._rarity(len(postings)) * (SATURATION + 1)
            for number, weight in postings:
                score = factor * weight / (weight + self._norms[number])
                if score > best.get(number, 0.0):
                    best[number] = score
        return best

    def _rarity(self, count: int) -> float:
        """The weight of a word that occurs in this many tools (BM25's inverse document frequency)."""
        return math.log(1 + (len(self._tools) - count + 0.5) / (count + 0.5))


def weights_of(tool: Tool) -> Mapping[str, float]:
    """Every term by which a tool can be found, with its weight."""
    weights: defaultdict[str, float] = defaultdict(float)
    for text, weight in _fields(tool):
        for term in terms(text):
            weights[term] += weight
    return weights


def _fields(tool: Tool) -> Iterator[tuple[str, float]]:
    name = tool.wire_name if isinstance(tool, ServerTool) else tool.name
    yield name[:TEXT_CHARACTERS], NAME
    yield tool.server[:TEXT_CHARACTERS], SERVER
    yield tool.search_hint, HINT
    yield tool.description[:TEXT_CHARACTERS], DESCRIPTION
    if (title := tool.title) != name:
        yield title, TITLE
    properties: Any = tool.input_schema.get("properties")
    if isinstance(properties, dict):
        yield from _parameters(properties)  # pyright: ignore[reportUnknownArgumentType]


def _parameters(properties: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for name, _ in zip(properties, range(PARAMETER_LIMIT)):
        yield name[:PARAMETER_CHARACTERS], PARAMETER
        schema = properties[name]
        text: Any = schema.get("description") if isinstance(schema, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if isinstance(text, str):
            yield text[:PARAMETER_CHARACTERS], PARAMETER_TEXT


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
