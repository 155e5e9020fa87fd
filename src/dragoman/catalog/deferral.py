"""Decides which tools a model is given from the start, and which it finds by searching. Pure.

A tool that declares that it is to be deferred is deferred. A tool that declares that it is always to be
loaded is shown, as far as the share for such tools allows. All others are shown if all tools together take no
more than their share of the context, and deferred otherwise. A decision about a tool is not made again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from dragoman.catalog.tokens import cost_of
from dragoman.catalog.tools import Tool
from dragoman.names import QualifiedName

ALWAYS_LOADED_PERCENT: Final = 10
"""The share of the context for tools that declare that they are always to be loaded, however small the share
of all tools is.

It has a limit, so that no server can fill a context by this declaration.
"""


class Budget(Struct, frozen=True):
    """How much of a model's context servers' tools may take without a search for them."""

    context_tokens: int = 200_000
    share_percent: int = 10
    """0 defers every tool; 100 or more defers only tools that request it."""

    @property
    def tokens(self) -> int:
        return self.context_tokens * min(self.share_percent, 100) // 100

    @property
    def always_loaded_tokens(self) -> int:
        return self.context_tokens * min(max(self.share_percent, ALWAYS_LOADED_PERCENT), 100) // 100

    @property
    def never_defers(self) -> bool:
        return self.share_percent >= 100


class Division(Struct, frozen=True):
    shown: tuple[Tool, ...] = ()
    deferred: tuple[Tool, ...] = ()


def divide(
    new_tools: Iterable[Tool], budget: Budget, *, shown: Iterable[Tool] = (), deferred: Iterable[Tool] = ()
) -> Division:
    """Decides about new tools, in addition to the tools that were decided before. Keeps their order."""
    new, before = list(new_tools), list(shown)
    always_loaded = _granted(new, budget, sum(cost_of(tool) for tool in before if tool.always_loads))
    others = {tool.name for tool in new if not tool.defers and not tool.always_loads}
    counted = (tool for tool in (*deferred, *new) if tool.always_loads or not tool.defers)
    at_once = set(always_loaded)
    if budget.never_defers or _fit((*before, *counted), budget.tokens):
        at_once |= others
    return Division(
        tuple(tool for tool in new if tool.name in at_once),
        tuple(tool for tool in new if tool.name not in at_once),
    )


def _granted(tools: Iterable[Tool], budget: Budget, spent: int) -> set[QualifiedName]:
    """The tools that are shown because they declare it, first come, first served."""
    room = budget.always_loaded_tokens - spent
    granted: set[QualifiedName] = set()
    for tool in tools:
        if tool.always_loads and (budget.never_defers or cost_of(tool) <= room):
            room -= cost_of(tool)
            granted.add(tool.name)
    return granted


def _fit(tools: Iterable[Tool], limit: int) -> bool:
    """Whether the tools fit; stops counting when they do not, because there may be very many."""
    spent = 0
    for tool in tools:
        spent += cost_of(tool)
        if spent > limit:
            return False
    return limit > 0
