"""Selects cases from large tables for every run."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def some(first: Iterable[A], second: Iterable[B], each: int) -> list[tuple[A, B]]:
    """So many of the second for each of the first, in turn, so that every one of both is tried."""
    others: Sequence[B] = list(second)
    step = max(1, len(others) // each)
    return [
        (one, others[(number + turn * step) % len(others)])
        for number, one in enumerate(first)
        for turn in range(min(each, len(others)))
    ]
