"""Fixtures of torture tests: `bystander_host` (see bystander_host.py), and `era` for both eras."""

import gc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.torture.bystander_host import HOSTILE, BystanderHost

LEGACY, MODERN = "2025-11-25", "2026-07-28"


@pytest.fixture(params=[LEGACY, MODERN], ids=["legacy", "modern"])
def era(request: pytest.FixtureRequest) -> str:
    """The protocol revision that is used with the hostile server."""
    return request.param


@pytest.fixture
def bystander_host(home: Path) -> Callable[..., BystanderHost]:
    """`async with bystander_host(entry)`: the entry of the hostile server. `others`: more servers by name."""

    def build(
        entry: Mapping[str, Any] | None = None, *, others: Mapping[str, Any] | None = None, **options: Any
    ) -> BystanderHost:
        hostile = {HOSTILE: entry} if entry is not None else {}
        return BystanderHost(home, {**hostile, **(others or {})}, **options)

    return build


@pytest.fixture
def light_heap() -> None:
    """Objects of earlier tests are excluded from garbage collection, so that a collection during the
    test is short."""
    gc.collect()
    gc.freeze()
