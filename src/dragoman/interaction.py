"""The seam through which a person is asked.

I own: the questions the host can put to a person and the answers it understands. Front ends and
programs implement `Interaction`; one that can also show forms has `fill`. `dragoman.testing.ScriptedUser`
is one for tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct


class PermissionQuestion(Struct, frozen=True, kw_only=True):
    """May this call be made?"""

    server: str
    tool: str
    title: str
    arguments: Mapping[str, Any]
    has_changed: bool = False
    """Whether it was allowed before, and its definition is another since."""


class PermissionAnswer(Struct, frozen=True):
    allowed: bool
    word: str | None = None
    """What the person says to the model along with a no."""
    for_session: bool = False
    """Whether a yes holds for further calls of this tool, as it is now, while this host runs."""


class FormQuestion(Struct, frozen=True, kw_only=True):
    """A server asks for some values. Its words are not ours: show who asks."""

    server: str
    message: str
    schema: Mapping[str, Any]
    """A flat JSON Schema: an object of strings, numbers, booleans and choices, perhaps with defaults."""


class FormAnswer(Struct, frozen=True):
    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] = {}
    """The values, if accepted. Left out fields take the defaults of the schema."""


class Interaction(Protocol):
    async def allow(self, question: PermissionQuestion) -> PermissionAnswer: ...


@runtime_checkable
class FillsForms(Protocol):
    """An `Interaction` that can also ask for values."""

    async def fill(self, question: FormQuestion) -> FormAnswer: ...
