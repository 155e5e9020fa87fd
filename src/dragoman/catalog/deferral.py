"""Which tools a model is given at once, and which it finds by searching. Pure.

A tool that asks to be deferred is deferred; one that asks to be shown at once is shown, as far as there is
room for such tools; all others are shown as long as everything together takes no more than its share of the
context, and deferred otherwise. A decision about a tool is not made again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from dragoman.catalog.tokens import cost_of
from dragoman.catalog.tools import Tool
from dragoman.names import QualifiedName

WISHES_PERCENT: Final = 10
"""What tools that ask to be shown at once may take of the context, however small the share of all tools is.

No server can flood a context by asking for it.
"""


class Budget(Struct, frozen=True):
    """How much of a model's context servers' tools may take without having been looked for."""

    context_tokens: int = 200_000
    share_percent: int = 10
    """0 defers every tool, 100 or more none that does not ask for it."""

    @property
    def tokens(self) -> int:
        return self.context_tokens * min(self.share_percent, 100) // 100

    @property
    def wish_tokens(self) -> int:
        return self.context_tokens * min(max(self.share_percent, WISHES_PERCENT), 100) // 100

    @property
    def never_defers(self) -> bool:
        return self.share_percent >= 100


class Division(Struct, frozen=True):
    shown: tuple[Tool, ...] = ()
    deferred: tuple[Tool, ...] = ()


def divide(
    newcomers: Iterable[Tool], budget: Budget, *, shown: Iterable[Tool] = (), deferred: Iterable[Tool] = ()
) -> Division:
    """What becomes of tools that were not there before, beside those that were. Keeps their order."""
    arrived, before = list(newcomers), list(shown)
    wishes = _granted(arrived, budget, sum(cost_of(tool) for tool in before if tool.always_loads))
    others = {tool.name for tool in arrived if not tool.defers and not tool.always_loads}
    counted = (tool for tool in (*deferred, *arrived) if tool.always_loads or not tool.defers)
    at_once = set(wishes)
    if budget.never_defers or _fit((*before, *counted), budget.tokens):
        at_once |= others
    return Division(
        tuple(tool for tool in arrived if tool.name in at_once),
        tuple(tool for tool in arrived if tool.name not in at_once),
    )


def _granted(tools: Iterable[Tool], budget: Budget, spent: int) -> set[QualifiedName]:
    """The tools whose wish to be shown at once is granted, first come, first served."""
    room = budget.wish_tokens - spent
    granted: set[QualifiedName] = set()
    for tool in tools:
        if tool.always_loads and (budget.never_defers or cost_of(tool) <= room):
            room -= cost_of(tool)
            granted.add(tool.name)
    return granted


def _fit(tools: Iterable[Tool], limit: int) -> bool:
    """Whether they fit; stops counting when they do not, for there may be very many."""
    spent = 0
    for tool in tools:
        spent += cost_of(tool)
        if spent > limit:
            return False
    return limit > 0
