"""The widget of one question to the person: on a separate screen (`questions.py`) or in the application."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

from rich.text import Text
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.message import Message

from dragoman.cleaning import one_line
from dragoman.interaction import RelatedCall

T = TypeVar("T")

BODY_ROWS: Final = 3
"""The fewest rows of the part that scrolls."""
CALLS_SHOWN: Final = 3


class QuestionView(Vertical, Generic[T]):
    """Its `BINDINGS` are the answers. Exactly one answer is sent."""

    class Answered(Message):
        def __init__(self, view: QuestionView[Any], answer: Any) -> None:
            super().__init__()
            self.view = view
            self.answer = answer

    class KeysChanged(Message):
        """The text of `keys()` has changed."""

    def __init__(self) -> None:
        super().__init__()
        self._is_answered = False
        self.answered: asyncio.Future[T] | None = None
        """The future on which the application waits for the answer."""

    def begin(self) -> None:
        """Moves the focus to the widget for the answer."""
        raise NotImplementedError

    def fit(self, rows: int) -> None:
        """Limits the height of the part that scrolls (`.body`), so that the rest is visible."""
        for body in self.query(".body"):
            others = self.outer_size.height - body.outer_size.height
            body.styles.max_height = max(BODY_ROWS, rows - others)

    def answer(self, value: T) -> None:
        if not self._is_answered:
            self._is_answered = True
            self.post_message(self.Answered(self, value))

    def action_answer(self, value: T) -> None:
        self.answer(value)

    def action_scroll_body(self, direction: int) -> None:
        body = self.query_one(".body", VerticalScroll)
        if direction < 0:
            body.scroll_page_up(animate=False)
        else:
            body.scroll_page_down(animate=False)

    def keys(self) -> str:
        """A text with the meaning of the keys."""
        bindings = [each for each in self.BINDINGS if isinstance(each, Binding) and each.show]
        return " · ".join(f"{key_name(each.key)} {each.description}" for each in bindings)


def key_name(key: str) -> str:
    """The name of a key for people: `Ctrl+S`, `Esc`."""
    if key == "pageup":
        return "PgUp"
    *modifiers, last = key.partition(",")[0].replace("escape", "esc").split("+")
    is_letter = len(last) == 1 and not modifiers
    return "+".join([*(each.capitalize() for each in modifiers), last if is_letter else last.capitalize()])


def heading(server: str, asks: str, calls: Sequence[RelatedCall]) -> Text:
    """The server that asks, and the calls during which it asks. The server's message is not part of the
    heading: a long message would move the question off the screen."""
    text = Text.assemble((one_line(server, 80), "bold"), f" {asks}")
    names = list(dict.fromkeys(one_line(call.name, 80) for call in calls))
    if names:
        more = f" and {len(names) - CALLS_SHOWN} more" if len(names) > CALLS_SHOWN else ""
        shown = ", ".join(names[:CALLS_SHOWN]) + more
        text.append(f"\nduring {shown}" if len(calls) == 1 else f"\nduring one of {shown}", style="dim")
    return text
