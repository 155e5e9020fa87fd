"""Asks one question of a server on a separate screen below the output of a command.

The terminal application shows the same questions in its question area.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from typing import Any, ClassVar, Final, TypeVar

from rich.console import Group
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.message_pump import MessagePump
from textual.widgets import Footer, Input, TextArea

from dragoman.interaction import FormAnswer, FormElicitation, SamplingReview
from dragoman.tui.form import FormView
from dragoman.tui.question_view import QUIET_SECONDS, QuestionView
from dragoman.tui.sampling_review import SamplingView

T = TypeVar("T")
WAIT_SECONDS: Final = 1.0
"""The longest time that a widget may take for a key before the next key is handled."""
KEY_LIMIT: Final = 100_000
"""The most keys that wait; more are dropped."""


class OrderedKeys(App[T]):
    """An application that passes a key to its widgets after they have handled the key before it.

    Textual passes each key to the widget that has the focus when the key arrives, although earlier keys,
    which may move the focus or change a value, are not handled yet. If several keys arrive at once (the
    person types fast, the machine is slow, or a script types), some would go to the wrong field, or a form
    would be sent without the last choice.
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: deque[events.Key | events.Paste] = deque(maxlen=KEY_LIMIT)
        self._handling: asyncio.Task[None] | None = None

    async def on_event(self, event: events.Event) -> None:
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
            return
        self._keys.append(event)
        if self._handling is None or self._handling.done():
            self._handling = asyncio.create_task(self._handle_keys(), name="dragoman keys")

    async def _handle_keys(self) -> None:
        while self._keys and self.is_running and self.screen_stack:
            focused = self.focused or self.screen
            await super().on_event(self._keys.popleft())
            if self._keys:  # if no key waits, the application need not have handled this one
                await self._wait_until_handled(focused)

    async def _wait_until_handled(self, receiver: Any) -> None:
        """Waits until the receiver of a key, its parents and the application have handled it."""
        for widget in receiver.ancestors_with_self:
            await _drain(widget)
        for widget in receiver.walk_children():  # the buttons of a radio field send messages to it
            await _drain(widget)
        for widget in receiver.ancestors_with_self:
            await _drain(widget)
        if self.screen_stack and not isinstance(self.focused, Input | TextArea):
            # A select list that opens or closes moves the focus after the next refresh.
            await _drain(self.screen, after_refresh=True)
            await _drain(self)


async def _drain(pump: MessagePump, *, after_refresh: bool = False) -> None:
    """Waits until the widget has handled the messages in its queue."""
    done = asyncio.Event()
    schedule = pump.call_after_refresh if after_refresh else pump.call_later
    if schedule(done.set):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                await done.wait()


INTERRUPTED: Final = 130
CLOSE_SECONDS: Final = 5.0


class QuestionApp(OrderedKeys[T]):
    """Shows one question, and exits with its answer.

    Keys that are typed before the question is visible are dropped, and so are keys that follow without a
    pause. They are meant for something else, and could fill in a form and send it.
    """

    ENABLE_COMMAND_PALETTE = False
    TITLE = "dragoman"
    AUTO_FOCUS = ""
    CSS_PATH = "questions.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "interrupt", priority=True, show=False)]

    def __init__(self, question: QuestionView[T]) -> None:
        super().__init__()
        self._question = question
        self._is_visible = False
        self._dropped_at = float("-inf")

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste) and self._is_too_early(event):
            self._dropped_at = time.monotonic()
        else:
            await super().on_event(event)

    def _is_too_early(self, event: events.Key | events.Paste) -> bool:
        if event.is_forwarded or (isinstance(event, events.Key) and event.key == "ctrl+c"):
            return False
        return not self._is_visible or time.monotonic() - self._dropped_at < QUIET_SECONDS

    def compose(self) -> ComposeResult:
        yield self._question
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self._question.begin()
        self.call_after_refresh(self._became_visible)

    def _became_visible(self) -> None:
        self._is_visible = True

    def on_question_view_answered(self, message: QuestionView.Answered) -> None:
        self.exit(message.answer)

    def action_interrupt(self) -> None:
        self.exit(return_code=INTERRUPTED)


async def fill_in(question: FormElicitation) -> FormAnswer:
    return await _ask(FormView(question)) or FormAnswer("cancel")


async def review(sampling: SamplingReview) -> SamplingReview | None:
    return await _ask(SamplingView(sampling))


async def _ask(question: QuestionView[T]) -> T | None:
    """The person's answer. Ctrl-C interrupts the command; cancelling removes the screen."""
    app = QuestionApp(question)
    running = asyncio.create_task(app.run_async(inline=True, inline_no_clear=True, mouse=False))
    try:
        # Shielded: a cancelled application does not remove its screen, and ends as if it was answered.
        answer = await asyncio.shield(running)
    except asyncio.CancelledError:
        app.exit(message=Group())  # the last message, even an empty one, replaces the screen
        await asyncio.wait([running], timeout=CLOSE_SECONDS)
        running.cancel()
        raise
    if app.return_code == INTERRUPTED:
        raise KeyboardInterrupt
    return answer
