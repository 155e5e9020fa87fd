"""Estimates how many tokens of a model's context tools take. Pure.

Decides which parts of a tool are counted. `content/tokens.py` counts the tokens.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from dragoman.catalog.tools import Tool
from dragoman.content.tokens import estimate

__all__ = ["as_sent", "cost_of", "estimate"]

OVERHEAD_TOKENS: Final = 4
"""The tokens that an API adds to each definition."""

_known: WeakKeyDictionary[Tool, int] = WeakKeyDictionary()


def cost_of(tool: Tool) -> int:
    """About how many tokens a tool takes when a model is given it."""
    cost = _known.get(tool)
    if cost is None:
        cost = _known[tool] = OVERHEAD_TOKENS + estimate(msgspec.json.encode(as_sent(tool)))
    return cost


def as_sent(tool: Tool) -> dict[str, Any]:
    """The parts of a tool that a model API receives, whatever names it uses for them."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.model_schema}
