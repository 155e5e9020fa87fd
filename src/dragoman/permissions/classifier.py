"""The interface of a classifier, which decides in mode `auto` before a person is asked, and a cautious one
that needs no model.

A classifier can allow or deny a call, or have a person asked. It is asked only about calls on which no rule
decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from msgspec import Struct

from dragoman.permissions.rules import Call


class Classification(Struct, frozen=True):
    """A classifier's decision about one call."""

    behaviour: Literal["allow", "ask", "deny"]
    reason: str
    """A sentence for the person, and for the audit log."""


class Classifier(Protocol):
    """Decides in permission mode `auto`. What a program passes as `classifier` to a host."""

    async def judge(self, call: Call) -> Classification:
        """Decides about a call that no rule decides. If it fails, the person is asked."""
        ...


class ByAnnotations:
    """Believes a tool that it only reads if its server's entry says `trusted`, and nothing else."""

    def __init__(self, is_trusted: Callable[[str], bool]) -> None:
        self._is_trusted = is_trusted

    async def judge(self, call: Call) -> Classification:
        if not call.server:
            return Classification("ask", "it is a tool of this computer")
        if not self._is_trusted(call.server):
            return Classification("ask", "the annotations of its server are not trusted")
        if not call.hints.read_only:
            return Classification("ask", "it is not declared read-only")
        return Classification("allow", "a trusted server declares it read-only")
