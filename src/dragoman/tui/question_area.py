"""The area for questions, between the conversation and the prompt."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final, TypeVar

from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from dragoman.tui.prompt import Prompt
from dragoman.tui.question_view import QuestionView

T = TypeVar("T")

QUIET_SECONDS: Final = 0.5
"""The pause in typing after which a question gets the focus, so that keys for the prompt do not answer it."""
LOOK_SECONDS: Final = 0.1
"""How often it is checked whether a message is being written or another screen is in front."""
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
        self._has_keyboard = False
        self._answered_at = float("-inf")
        """The time of the last answer: a key that is held down must not answer the next question."""
        self._hidden_at = float("-inf")
        """The last time at which another screen was in front, whose keys must not answer a question."""

    @property
    def is_asking(self) -> bool:
        return self._asked is not None

    async def ask(self, view: QuestionView[T]) -> T:
        """Shows the question until it is answered or this is cancelled."""
        answered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        view.answered = answered
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
        """Runs as a message of this widget: a task of the host has no active application, and widgets that it
        creates could not find theirs."""
        if view.answered is None or view.answered.done():
            return
        keys = Static("…", markup=False, classes="keys")
        self._asked, self._keys, self._has_keyboard = view, keys, False
        await self.mount(view, keys)
        self.add_class("-shown")
        self._take_keyboard()
        self.call_after_refresh(self._fit)
        self.post_message(self.Changed())

    def on_question_view_answered(self, message: QuestionView.Answered) -> None:
        answered = message.view.answered
        if answered is not None and not answered.done():
            self._answered_at = time.monotonic()
            answered.set_result(message.answer)

    def on_question_view_keys_changed(self) -> None:
        if self._asked is not None and self._keys is not None and self._has_keyboard:
            self._keys.update(self._asked.keys())

    def _take_keyboard(self) -> None:
        """Moves the focus to the question as soon as it is visible, no message is being written and no key
        was pressed for a moment: a letter for the message must not become a permission."""
        if self._asked is None or self._keys is None or self._has_keyboard:
            return
        is_hidden = not self.screen.is_active
        if is_hidden:
            self._hidden_at = time.monotonic()
        quiet = time.monotonic() - max(self._prompt.typed_at, self._answered_at, self._hidden_at)
        if is_hidden or self._prompt.text.strip():
            self._keys.update(WRITING_HINT if self._prompt.text.strip() else "…")
            self.set_timer(LOOK_SECONDS, self._take_keyboard)
        elif quiet < QUIET_SECONDS:
            self.set_timer(QUIET_SECONDS - quiet, self._take_keyboard)
        else:
            self.answer_now()

    def answer_now(self) -> None:
        """Moves the focus to the question."""
        is_seen = self.screen.is_active
        if is_seen and self._asked is not None and self._keys is not None:
            self._has_keyboard = True
            self._asked.begin()
            self._keys.update(self._asked.keys())

    def on_resize(self) -> None:
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        if self._asked is not None:
            self._asked.fit(self.screen.size.height - ROWS_AROUND)
