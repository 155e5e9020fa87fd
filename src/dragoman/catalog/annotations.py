"""The annotations of a tool: whether it only reads, destroys, may be repeated, reaches outside. Pure.

Where an annotation is missing or not a boolean, the default of the specification is used. Annotations are
claims of a server: they decide how a question to a person looks and what may run concurrently, and grant
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

Risk = Literal["reads", "writes", "destroys"]


class Hints(Struct, frozen=True):
    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True
    says_destructive: bool = False
    """Whether its server declares it destructive; not by default."""

    @property
    def is_parallel(self) -> bool:
        """Whether calls may run in parallel."""
        return self.read_only

    @property
    def risk(self) -> Risk:
        if self.read_only:
            return "reads"
        return "destroys" if self.says_destructive else "writes"


def hints_of(annotations: Mapping[str, Any]) -> Hints:
    given = {
        name: value
        for name in ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
        if isinstance(value := annotations.get(name), bool)
    }
    read_only = given.get("readOnlyHint", False)
    # The other two mean nothing where nothing is written.
    destructive = not read_only and given.get("destructiveHint", True)
    return Hints(
        read_only=read_only,
        destructive=destructive,
        idempotent=read_only or given.get("idempotentHint", False),
        open_world=given.get("openWorldHint", True),
        says_destructive=destructive and "destructiveHint" in given,
    )
