"""The interface of a classifier, which decides in mode `auto` before a person is asked, and a cautious one
that needs no model.

A classifier can allow or deny a call, or have a person asked. It is asked only about calls on which no rule
decides.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal, Protocol

from msgspec import Struct

from dragoman.cleaning import for_model
from dragoman.permissions.rules import Call

TURN_LIMIT: Final = 20
TURN_CHARACTERS: Final = 2_000


class Classification(Struct, frozen=True):
    """A classifier's decision about one call."""

    behaviour: Literal["allow", "ask", "deny"]
    reason: str
    """A sentence for the person, and for the audit log."""


class ConversationTurn(Struct, frozen=True):
    """What one side of a conversation said."""

    role: Literal["user", "assistant"]
    text: str
    """Of the assistant: what it wrote, and which calls it made. Results of tools are left out: text of
    servers must not argue for the next call."""


Turns = Callable[[], Sequence[ConversationTurn]]

_conversation: ContextVar[Turns | None] = ContextVar("dragoman conversation", default=None)
"""Of the task that makes a call; a call has no other relation to a conversation."""


@contextmanager
def conversation_for_classifier(turns: Turns) -> Generator[None]:
    """Calls that are made inside belong to this conversation: a classifier is given what was said so far.
    `turns` is called only if a classifier is asked."""
    token = _conversation.set(turns)
    try:
        yield
    finally:
        _conversation.reset(token)


def conversation_so_far() -> tuple[ConversationTurn, ...]:
    """The last turns of the conversation that the current call belongs to, cleaned and bounded."""
    turns = _conversation.get()
    return () if turns is None else bounded(turns())


def bounded(turns: Sequence[ConversationTurn]) -> tuple[ConversationTurn, ...]:
    """The first turn, which mostly says what is wanted, and the last ones."""
    kept = turns if len(turns) <= TURN_LIMIT else (turns[0], *turns[1 - TURN_LIMIT :])
    return tuple(ConversationTurn(turn.role, for_model(turn.text, TURN_CHARACTERS)) for turn in kept)


class Classifier(Protocol):
    """Decides in permission mode `auto`. What a program passes as `classifier` to a host."""

    async def judge(self, call: Call, conversation: Sequence[ConversationTurn]) -> Classification:
        """Decides about a call that no rule decides. If it fails, the person is asked. `conversation`: what
        was said before the call, oldest first; empty for a call outside of a conversation."""
        ...


class ByAnnotations:
    """Believes a tool that it only reads if its server's entry says `trusted`, and nothing else."""

    def __init__(self, is_trusted: Callable[[str], bool]) -> None:
        self._is_trusted = is_trusted

    async def judge(self, call: Call, conversation: Sequence[ConversationTurn] = ()) -> Classification:
        if not call.server:
            return Classification("ask", "it is a tool of this computer")
        if not self._is_trusted(call.server):
            return Classification("ask", "the annotations of its server are not trusted")
        if not call.hints.read_only:
            return Classification("ask", "it is not declared read-only")
        return Classification("allow", "a trusted server declares it read-only")
