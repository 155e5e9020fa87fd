"""The interface of a classifier, which decides in mode `auto` before a person is asked, and a cautious one
that needs no model.

A classifier can allow or deny a call, or have a person asked. It is called only for calls that no rule
decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, Protocol

from msgspec import Struct

from dragoman.cleaning import for_model
from dragoman.interaction import ConversationTurn, current_conversation
from dragoman.permissions.rules import Call

TURN_LIMIT: Final = 20
TURN_CHARACTERS: Final = 2_000


class Classification(Struct, frozen=True):
    """A classifier's decision about one call."""

    behaviour: Literal["allow", "ask", "deny"]
    reason: str
    """A sentence for the person, and for the audit log."""


def conversation_so_far() -> tuple[ConversationTurn, ...]:
    """The last turns of the conversation that the current call belongs to, cleaned and bounded."""
    turns = current_conversation()
    return () if turns is None else bounded(turns())


def bounded(turns: Sequence[ConversationTurn]) -> tuple[ConversationTurn, ...]:
    """The first turn, which usually states the task, and the last ones."""
    kept = turns if len(turns) <= TURN_LIMIT else (turns[0], *turns[1 - TURN_LIMIT :])
    return tuple(ConversationTurn(turn.role, for_model(turn.text, TURN_CHARACTERS)) for turn in kept)


class Classifier(Protocol):
    """Decides in permission mode `auto`. What a program passes as `classifier` to a host."""

    async def judge(self, call: Call, conversation: Sequence[ConversationTurn]) -> Classification:
        """Decides about a call that no rule decides. If it fails, the person is asked. `conversation`: the
        turns before the call, oldest first; empty for a call outside of a conversation."""
        ...


class ByAnnotations:
    """A classifier that allows a tool that is declared read-only if its server's entry has `trusted`, and
    nothing else."""

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
