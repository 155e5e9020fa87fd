"""`scripts/bench search`: finding the right tool among two thousand, and what that saves of a context.

Our index beside SQLite's FTS5 (standard library) and, where it is installed, bm25s: the same tools, the same
questions, one after the other in one process. Recall is the same on every machine; of the times, only ratios
carry over.
"""

from __future__ import annotations

import argparse
import gc
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from dragoman.catalog.search import Index
from dragoman.catalog.tokens import cost_of, estimate
from dragoman.catalog.tools import ServerTool
from dragoman.toolbox import Toolbox
from tests.data.catalogue import make

Key = tuple[str, str]
Find = Callable[[str], list[Key]]

LEAST_RECALL = 0.95
MOST_MILLISECONDS = 10.0
MOST_CONTEXT = 0.05
ROUNDS = 3
_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z])|[_\-.]")


class Measured(NamedTuple):
    build_ms: float
    memory_mb: float
    times_ms: list[float]
    recalls: Mapping[str, float]


def questions() -> dict[str, list[make.Question]]:
    asked = make.questions()
    return {
        "all 200": asked,
        "tuned on": [one for one in asked if not one.is_held_out],
        "held out": [one for one in asked if one.is_held_out],
        "written later": make.questions("fresh.txt"),
        "other words": make.questions("drawn.txt"),
    }


# Three ways to search.


def with_own_index(tools: list[ServerTool]) -> Find:
    index = Index(tools)
    return lambda query: [(one.server, one.definition.name) for one in index.search(query)]


def with_fts5(tools: list[ServerTool]) -> Find:
    database = sqlite3.connect(":memory:")
    database.execute(
        "create virtual table tools using fts5(name, server, description, parameters, about, "
        "tokenize='porter unicode61')"
    )
    database.executemany("insert into tools values (?, ?, ?, ?, ?)", map(_fields, tools))
    statement = (
        "select rowid from tools where tools match ? order by bm25(tools, 4, 3, 1.5, 0.5, 0.25) limit 5"
    )

    def find(query: str) -> list[Key]:
        asked = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        return [_key(tools[number - 1]) for (number,) in database.execute(statement, (asked,))]

    return find


def with_bm25s(tools: list[ServerTool]) -> Find:
    import bm25s  # ImportError: not installed here

    texts = [" ".join(_repeated(*_fields(one))) for one in tools]
    engine: Any = bm25s.BM25()
    engine.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)

    def find(query: str) -> list[Key]:
        asked = bm25s.tokenize([query], stopwords="en", show_progress=False)
        numbers, _ = engine.retrieve(asked, k=5, show_progress=False)
        return [_key(tools[number]) for number in numbers[0]]

    return find


WAYS: dict[str, Callable[[list[ServerTool]], Find]] = {
    "Dragoman": with_own_index,
    "SQLite FTS5": with_fts5,
    "bm25s": with_bm25s,
}


def _key(tool: ServerTool) -> Key:
    return tool.server, tool.definition.name


def _fields(tool: ServerTool) -> tuple[str, str, str, str, str]:
    properties: dict[str, Any] = tool.input_schema.get("properties", {})
    about = (part.get("description", "") for part in properties.values() if isinstance(part, dict))
    names = _JOINT.sub(" ", " ".join(properties))
    return _JOINT.sub(" ", tool.definition.name), tool.server, tool.description, names, " ".join(about)


def _repeated(name: str, server: str, description: str, parameters: str, about: str) -> list[str]:
    """bm25s knows no fields: what counts more is said more often."""
    return [name] * 4 + [server] * 3 + [description] * 2 + [parameters, about]


# Measuring.


def measure(make_find: Callable[[list[ServerTool]], Find], tools: list[ServerTool]) -> Measured:
    gc.collect()
    before, start = _resident_mb(), time.perf_counter()
    find = make_find(tools)
    build_ms, memory_mb = (time.perf_counter() - start) * 1000, _resident_mb() - before
    recalls: dict[str, float] = {}
    times: list[float] = []
    for name, asked in questions().items():
        hits = 0
        for question in asked:
            taken, answers = _timed(find, question.text)
            times.append(taken)
            hits += bool(question.answers.intersection(answers))
        recalls[name] = hits / len(asked)
    return Measured(build_ms, memory_mb, times, recalls)


def _timed(find: Find, query: str) -> tuple[float, list[Key]]:
    taken: list[float] = []
    answers: list[Key] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        answers = find(query)
        taken.append((time.perf_counter() - start) * 1000)
    return median(taken), answers


def _resident_mb() -> float:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
    except OSError:
        return 0.0


class _Offering:
    """As much of a host as a toolbox looks at before anything is asked."""

    def __init__(self, tools: list[ServerTool]) -> None:
        self._tools = tools
        self.servers: dict[str, Any] = {}

    def tools(self, *, include_app_tools: bool = False, include_denied: bool = False) -> list[ServerTool]:
        return self._tools

    def is_app_tool(self, name: str) -> bool:
        return False


def context_share(tools: list[ServerTool]) -> tuple[int, int]:
    """Tokens a model is sent before it searches, and those of the full list."""
    box = Toolbox(_Offering(tools))  # type: ignore[arg-type]
    sent = sum(cost_of(one) for one in box.tools()) + estimate(box.overview())
    return sent, sum(cost_of(one) for one in tools)


# Reporting.


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench search", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a promise is not kept")
    chosen = parser.parse_args(arguments)
    tools = make.tools()
    for one in tools:  # decoded before, for all alike
        _ = one.description, one.input_schema
    print(f"{len(tools)} tools of {len({one.server for one in tools})} servers\n")
    own = _compare(tools)
    sent, full = context_share(tools)
    promises = [
        (own.recalls["all 200"] >= LEAST_RECALL, f"recall@5 of 200 questions: {own.recalls['all 200']:.1%}"),
        (max(own.times_ms) < MOST_MILLISECONDS, f"longest search: {max(own.times_ms):.1f} ms"),
        (sent <= MOST_CONTEXT * full, f"context: {sent} of {full} tokens ({sent / full:.1%})"),
    ]
    for kept, words in promises:
        print(f"{'kept' if kept else 'NOT KEPT':>9}  {words}")
    if chosen.check and not all(kept for kept, _ in promises):
        sys.exit(1)


def _compare(tools: list[ServerTool]) -> Measured:
    sets = list(questions())
    print(
        f"{'recall@5':<13}"
        + "".join(f"{name:>15}" for name in sets)
        + "   build    memory   search: median, longest"
    )
    measured: dict[str, Measured] = {}
    for name, way in WAYS.items():
        try:
            one = measured[name] = measure(way, tools)
        except ImportError:
            print(f"{name:<13}   not installed")
            continue
        recalls = "".join(f"{one.recalls[each]:>15.1%}" for each in sets)
        speed = f"{median(one.times_ms):.2f} ms, {max(one.times_ms):.2f} ms"
        print(f"{name:<13}{recalls} {one.build_ms:>5.0f} ms {one.memory_mb:>6.1f} MB   {speed}")
    print()
    return measured["Dragoman"]
