"""Hints: the specification's defaults, and nothing but truth values."""

from typing import Any

import pytest

from dragoman.catalog.annotations import Hints, hints_of

pytestmark = pytest.mark.requirement("CAT-4")

DEFAULTS = Hints(read_only=False, destructive=True, idempotent=False, open_world=True)


@pytest.mark.parametrize(
    ("annotations", "hints", "risk"),
    [
        ({}, DEFAULTS, "writes"),
        ({"title": "x"}, DEFAULTS, "writes"),
        ({"readOnlyHint": True}, Hints(True, False, True, True), "reads"),
        ({"readOnlyHint": True, "destructiveHint": True}, Hints(True, False, True, True), "reads"),
        (
            {"destructiveHint": True},
            Hints(False, True, False, True, is_declared_destructive=True),
            "destroys",
        ),
        ({"destructiveHint": False}, Hints(False, False, False, True), "writes"),
        ({"idempotentHint": True}, Hints(False, True, True, True), "writes"),
        ({"openWorldHint": False}, Hints(False, True, False, False), "writes"),
        ({"readOnlyHint": "true", "openWorldHint": 0, "destructiveHint": None}, DEFAULTS, "writes"),
        ({"readOnlyHint": 1}, DEFAULTS, "writes"),
    ],
)
def test_how_annotations_are_read(annotations: dict[str, Any], hints: Hints, risk: str):
    assert hints_of(annotations) == hints
    assert hints_of(annotations).risk == risk
    assert hints_of(annotations).is_parallel == hints.read_only
