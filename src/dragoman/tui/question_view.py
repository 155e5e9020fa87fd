"""The widget of one question to the person: alone on a screen (`questions.py`) or in the application."""

from __future__ import annotations

import asyncio
from typing import Any, Generic, TypeVar

from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message

T = TypeVar("T")


class QuestionView(Vertical, Generic[T]):
    """Its `BINDINGS` are the answers; exactly one answer is given."""

    class Answered(Message):
        def __init__(self, view: QuestionView[Any], answer: Any) -> None:
            super().__init__()
            self.view = view
            self.answer = answer

    def __init__(self) -> None:
        super().__init__()
        self._is_answered = False
        self.answered: asyncio.Future[T] | None = None
        """Where the application waits for the answer."""

    def begin(self) -> None:
        """Moves the focus to where the person answers."""
        raise NotImplementedError

    def answer(self, value: T) -> None:
        if not self._is_answered:
            self._is_answered = True
            self.post_message(self.Answered(self, value))

    def keys(self) -> str:
        """Which key means what, in words."""
        bindings = [each for each in self.BINDINGS if isinstance(each, Binding) and each.show]
        return " · ".join(f"{key_name(each.key)} {each.description}" for each in bindings)


def key_name(key: str) -> str:
    """As it is written on keys: `Ctrl+S`, `Esc`."""
    first = key.partition(",")[0].replace("escape", "esc")
    return "+".join(part.capitalize() if len(part) > 1 else part for part in first.split("+"))
