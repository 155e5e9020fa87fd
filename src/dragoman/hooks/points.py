"""The points at which hooks may act.

I own: the face the pipeline calls. `NoHooks` is the host's until hooks are configured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from dragoman.catalog.tools import Tool

Outcome = TypeVar("Outcome")


class Hooks(Protocol):
    async def before_call(self, tool: Tool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments to go on with."""
        ...

    async def after_call(self, tool: Tool, outcome: Outcome) -> Outcome:
        """The outcome to hand back."""
        ...


class NoHooks:
    async def before_call(self, tool: Tool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return arguments

    async def after_call(self, tool: Tool, outcome: Outcome) -> Outcome:
        return outcome
