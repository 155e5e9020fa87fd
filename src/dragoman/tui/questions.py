"""Asks one question of a server on a screen of its own, below what the terminal shows already.

For commands; the terminal application shows the same questions inside itself.
"""

from __future__ import annotations

import asyncio
import contextlib
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
from dragoman.tui.question_view import QuestionView
from dragoman.tui.sampling_review import SamplingView

T = TypeVar("T")
WAIT_SECONDS: Final = 1.0
"""A widget that does not come to an end with a key delays the next one no longer."""
KEY_LIMIT: Final = 100_000
"""Keys that wait; more are dropped."""


class OrderedKeys(App[T]):
    """An application that gives a key to its widgets when they are done with the key before it.

    Textual gives each key to the widget that has the focus when the key arrives, although keys before it,
    which may move the focus or change a value, are still on their way through the widgets. Of keys that
    arrive in one piece (a quick person, a slow machine, a script) some would go to the wrong field, or a form
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
            if self._keys:  # otherwise nothing is waiting
                await self._settled(focused)

    async def _settled(self, receiver: Any) -> None:
        """Waits until the receiver of a key, the widgets around it and the application have handled the key,
        and what they have sent each other about it."""
        for widget in receiver.ancestors_with_self:
            await _handled(widget)
        for widget in receiver.walk_children():  # the buttons of a radio field report to it
            await _handled(widget)
        for widget in receiver.ancestors_with_self:
            await _handled(widget)
        if self.screen_stack and not isinstance(self.focused, Input | TextArea):
            # A list that opens or closes moves the focus after the next refresh.
            await _handled(self.screen, after_refresh=True)
            await _handled(self)


async def _handled(pump: MessagePump, *, after_refresh: bool = False) -> None:
    """Waits until the widget has handled the messages that it has now."""
    done = asyncio.Event()
    schedule = pump.call_after_refresh if after_refresh else pump.call_later
    if schedule(done.set):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                await done.wait()


INTERRUPTED: Final = 130
CLOSE_SECONDS: Final = 5.0


class QuestionApp(OrderedKeys[T]):
    """Shows one question, and ends with its answer."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "dragoman"
    AUTO_FOCUS = ""
    CSS_PATH = "questions.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "interrupt", priority=True, show=False)]

    def __init__(self, question: QuestionView[T]) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        yield self._question
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self._question.begin()

    def on_question_view_answered(self, message: QuestionView.Answered) -> None:
        self.exit(message.answer)

    def action_interrupt(self) -> None:
        self.exit(return_code=INTERRUPTED)


async def fill_in(question: FormElicitation) -> FormAnswer:
    return await _ask(FormView(question)) or FormAnswer("cancel")


async def review(sampling: SamplingReview) -> SamplingReview | None:
    return await _ask(SamplingView(sampling))


async def _ask(question: QuestionView[T]) -> T | None:
    """What the person answered. Ctrl-C interrupts the command; cancelling this removes the screen."""
    app = QuestionApp(question)
    running = asyncio.create_task(app.run_async(inline=True, inline_no_clear=True, mouse=False))
    try:
        # Shielded: an application that is cancelled leaves its screen where it is, and ends as if answered.
        answer = await asyncio.shield(running)
    except asyncio.CancelledError:
        app.exit(message=Group())  # a last message, even an empty one, takes the place of the screen
        await asyncio.wait([running], timeout=CLOSE_SECONDS)
        running.cancel()
        raise
    if app.return_code == INTERRUPTED:
        raise KeyboardInterrupt
    return answer
