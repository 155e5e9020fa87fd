"""Every torture test gets an `arena` (see arena.py), and an `era` where the protocol's era matters."""

import gc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.torture.arena import HOSTILE, Arena

LEGACY, MODERN = "2025-11-25", "2026-07-28"


@pytest.fixture(params=[LEGACY, MODERN], ids=["legacy", "modern"])
def era(request: pytest.FixtureRequest) -> str:
    """The protocol revision that is used with the hostile server."""
    return request.param


@pytest.fixture
def arena(home: Path) -> Callable[..., Arena]:
    """`async with arena(entry)`: the entry is the hostile server. `others` are further servers by name."""

    def build(
        entry: Mapping[str, Any] | None = None, *, others: Mapping[str, Any] | None = None, **options: Any
    ) -> Arena:
        hostile = {HOSTILE: entry} if entry is not None else {}
        return Arena(home, {**hostile, **(others or {})}, **options)

    return build


@pytest.fixture
def light_heap() -> None:
    """Objects of earlier tests are excluded from garbage collection, so that a collection during the
    test is short."""
    gc.collect()
    gc.freeze()
