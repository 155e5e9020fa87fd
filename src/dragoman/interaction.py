"""The seam through which a person is asked.

I own: the questions the host can put to a person and the answers it understands. Front ends and
programs implement `Interaction`; `dragoman.testing.ScriptedUser` is one for tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct


class PermissionQuestion(Struct, frozen=True, kw_only=True):
    """May this call be made?"""

    server: str
    tool: str
    title: str
    arguments: Mapping[str, Any]


class PermissionAnswer(Struct, frozen=True):
    allowed: bool
    word: str | None = None
    """What the person says to the model along with a no."""


class Interaction(Protocol):
    async def allow(self, question: PermissionQuestion) -> PermissionAnswer: ...
