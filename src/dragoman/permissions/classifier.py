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


class Opinion(Struct, frozen=True):
    behaviour: Literal["allow", "ask", "deny"]
    reason: str
    """A sentence for the person, and for the audit."""


class Classifier(Protocol):
    async def judge(self, call: Call) -> Opinion:
        """What is to become of a call that no rule decides."""
        ...


class ByAnnotations:
    """Believes a tool that it only reads if its server's entry says `trusted`, and nothing else."""

    def __init__(self, is_trusted: Callable[[str], bool]) -> None:
        self._is_trusted = is_trusted

    async def judge(self, call: Call) -> Opinion:
        if not call.server:
            return Opinion("ask", "it is a tool of this computer")
        if not self._is_trusted(call.server):
            return Opinion("ask", "the annotations of its server are not trusted")
        if not call.hints.read_only:
            return Opinion("ask", "it is not declared read-only")
        return Opinion("allow", "a trusted server declares it read-only")
