"""The widget of one question to the person, and the area of the application that shows it.

`questions.py` shows the same widgets on a separate screen.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

from rich.text import Text
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import Static

from dragoman.cleaning import one_line
from dragoman.interaction import RelatedCall
from dragoman.tui.prompt import Prompt

T = TypeVar("T")

BODY_ROWS: Final = 3
"""The fewest rows of the part that scrolls."""
CALLS_SHOWN: Final = 3


class QuestionView(Vertical, Generic[T]):
    """A question. Its `BINDINGS` are the possible answers. Only the first answer is sent."""

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


QUIET_SECONDS: Final = 0.5
"""The pause in typing after which a question gets the focus, so that keys for the prompt do not answer it."""
LOOK_SECONDS: Final = 0.1
"""The interval between two checks whether a message is being written or another screen is in front."""
WRITING_HINT: Final = "Send or clear your message to answer, or press Ctrl+G"
ROWS_AROUND: Final = 10
"""The rows for the border and keys of a question, the prompt, and a part of the conversation."""


class QuestionArea(Vertical):
    """Shows one question at a time."""

    class Changed(Message):
        """A question was opened or closed."""

    def __init__(self, prompt: Prompt) -> None:
        super().__init__(id="question")
        self._prompt = prompt
        self._asked: QuestionView[Any] | None = None
        self._keys: Static | None = None
        self._turn = asyncio.Lock()
        """Held while a question is shown. It is needed for sign-ins, which do not wait in the host's queue of
        questions."""
        self._is_focused = False
        self._answered_at = float("-inf")
        """The time of the last answer: a key that is held down must not answer the next question."""
        self._hidden_at = float("-inf")
        """The last time at which another screen was in front, whose keys must not answer a question."""
        self._shown_at = float("-inf")
        """The time at which the question appeared."""

    @property
    def is_asking(self) -> bool:
        return self._asked is not None

    @property
    def is_new(self) -> bool:
        """Whether the question has just appeared, so that a click may be meant for what was there before."""
        return time.monotonic() - max(self._shown_at, self._hidden_at) < QUIET_SECONDS

    async def ask(self, view: QuestionView[T]) -> T:
        """Shows the question until it is answered or the calling task is cancelled. Questions are shown one
        after the other, in the order in which they are asked."""
        answered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        view.answered = answered
        async with self._turn:
            self.call_later(self._show, view)
            try:
                return await answered
            finally:
                self._asked = None
                self.remove_class("-shown")
                self.remove_children()
                self._prompt.focus()
                self.post_message(self.Changed())

    async def _show(self, view: QuestionView[Any]) -> None:
        """Must be run by the message loop of this widget: a task of the host has no active application, which
        new widgets need."""
        if view.answered is None or view.answered.done():
            return
        keys = Static("…", markup=False, classes="keys")
        self._asked, self._keys, self._is_focused = view, keys, False
        await self.mount(view, keys)
        self.add_class("-shown")
        self._shown_at = time.monotonic()
        self._focus_when_quiet()
        self.call_after_refresh(self._fit)
        self.post_message(self.Changed())

    def on_question_view_answered(self, message: QuestionView.Answered) -> None:
        answered = message.view.answered
        if answered is not None and not answered.done():
            self._answered_at = time.monotonic()
            answered.set_result(message.answer)

    def on_question_view_keys_changed(self) -> None:
        if self._asked is not None and self._keys is not None and self._is_focused:
            self._keys.update(self._asked.keys())

    def _focus_when_quiet(self) -> None:
        """Moves the focus to the question as soon as it is visible, no message is being written and no key
        was pressed for a moment. Otherwise a letter that was meant for a message could allow a call."""
        if self._asked is None or self._keys is None or self._is_focused:
            return
        is_hidden = not self.screen.is_active
        if is_hidden:
            self._hidden_at = time.monotonic()
        quiet = time.monotonic() - max(self._prompt.typed_at, self._answered_at, self._hidden_at)
        if is_hidden or self._prompt.text.strip():
            self._keys.update(WRITING_HINT if self._prompt.text.strip() else "…")
            self.set_timer(LOOK_SECONDS, self._focus_when_quiet)
        elif quiet < QUIET_SECONDS:
            self.set_timer(QUIET_SECONDS - quiet, self._focus_when_quiet)
        else:
            self.focus_question()

    def focus_question(self) -> None:
        """Moves the focus to the question."""
        is_seen = self.screen.is_active
        if is_seen and self._asked is not None and self._keys is not None:
            self._is_focused = True
            self._asked.begin()
            self._keys.update(self._asked.keys())

    def on_resize(self) -> None:
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        if self._asked is not None:
            self._asked.fit(self.screen.size.height - ROWS_AROUND)
