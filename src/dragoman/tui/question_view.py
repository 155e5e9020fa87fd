"""The widget of one question to the person: alone on a screen (`questions.py`) or in the application."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

from rich.text import Text
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message

from dragoman.cleaning import one_line, visible
from dragoman.interaction import RelatedCall

T = TypeVar("T")

BODY_ROWS: Final = 3
"""What scrolls is never lower."""


class QuestionView(Vertical, Generic[T]):
    """Its `BINDINGS` are the answers; exactly one answer is given."""

    class Answered(Message):
        def __init__(self, view: QuestionView[Any], answer: Any) -> None:
            super().__init__()
            self.view = view
            self.answer = answer

    class KeysChanged(Message):
        """`keys()` returns another text from now on."""

    def __init__(self) -> None:
        super().__init__()
        self._is_answered = False
        self.answered: asyncio.Future[T] | None = None
        """The future on which the application waits for the answer."""

    def begin(self) -> None:
        """Moves the focus to where the person answers."""
        raise NotImplementedError

    def fit(self, rows: int) -> None:
        """Makes what scrolls (`.body`) as low as needed, so that the rest of the question is visible."""
        for body in self.query(".body"):
            others = self.outer_size.height - body.outer_size.height
            body.styles.max_height = max(BODY_ROWS, rows - others)

    def answer(self, value: T) -> None:
        if not self._is_answered:
            self._is_answered = True
            self.post_message(self.Answered(self, value))

    def action_answer(self, value: T) -> None:
        self.answer(value)

    def keys(self) -> str:
        """Which key means what, in words."""
        bindings = [each for each in self.BINDINGS if isinstance(each, Binding) and each.show]
        return " · ".join(f"{key_name(each.key)} {each.description}" for each in bindings)


def key_name(key: str) -> str:
    """As it is written on keys: `Ctrl+S`, `Esc`."""
    *modifiers, last = key.partition(",")[0].replace("escape", "esc").split("+")
    is_letter = len(last) == 1 and not modifiers
    return "+".join([*(each.capitalize() for each in modifiers), last if is_letter else last.capitalize()])


def heading(server: str, asks: str, message: str, calls: Sequence[RelatedCall]) -> Text:
    """Which server asks, in the course of which call, and its message in quotes."""
    text = Text.assemble((one_line(server, 80), "bold"), f" {asks}")
    names = [one_line(call.name, 80) for call in calls]
    if names:
        during = f"during {names[0]}" if len(names) == 1 else f"during one of {', '.join(names)}"
        text.append(f"\n{during}", style="dim")
    if message:
        text.append(f"\n“{visible(message, 4096)}”")
    return text
