"""Asks one question of a server on a screen of its own, below what the terminal shows already.

For commands; the terminal application shows the same questions inside itself.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final, TypeVar

from rich.console import Group
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer

from dragoman.interaction import FormAnswer, FormElicitation, SamplingReview
from dragoman.tui.form import FormView
from dragoman.tui.key_order import OrderedKeys
from dragoman.tui.question_view import QuestionView
from dragoman.tui.sampling_review import SamplingView

INTERRUPTED: Final = 130
CLOSE_SECONDS: Final = 5.0

T = TypeVar("T")


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
