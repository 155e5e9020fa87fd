"""The annotations of a tool: read-only, destructive, idempotent, open world. Pure.

Where an annotation is missing or not a boolean, the default of the specification is used. Annotations are
claims of a server: they affect how a question to a person is shown and which calls may run concurrently, and
grant nothing.
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
    is_declared_destructive: bool = False
    """Whether its server explicitly declares it destructive; the default of the specification is not
    applied."""

    @property
    def is_parallel(self) -> bool:
        """Whether calls may run in parallel."""
        return self.read_only

    @property
    def risk(self) -> Risk:
        if self.read_only:
            return "reads"
        return "destroys" if self.is_declared_destructive else "writes"


def hints_of(annotations: Mapping[str, Any]) -> Hints:
    given = {
        name: value
        for name in ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
        if isinstance(value := annotations.get(name), bool)
    }
    read_only = given.get("readOnlyHint", False)
    # The other two have no meaning for a read-only tool.
    destructive = not read_only and given.get("destructiveHint", True)
    return Hints(
        read_only=read_only,
        destructive=destructive,
        idempotent=read_only or given.get("idempotentHint", False),
        open_world=given.get("openWorldHint", True),
        is_declared_destructive=destructive and "destructiveHint" in given,
    )
