"""Asks one question of a server on a screen of its own, below what the terminal shows already.

For commands; the terminal application shows the same screens inside itself.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final, TypeVar

from rich.console import Group
from textual.binding import Binding, BindingType
from textual.screen import Screen

from dragoman.interaction import FormAnswer, FormElicitation, SamplingReview
from dragoman.tui.form import FormScreen
from dragoman.tui.key_order import OrderedKeys
from dragoman.tui.sampling_review import SamplingScreen

INTERRUPTED: Final = 130
CLOSE_SECONDS: Final = 5.0

T = TypeVar("T")


class QuestionApp(OrderedKeys[T]):
    """Shows one screen, and ends with its result."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "dragoman"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "interrupt", priority=True, show=False)]

    def __init__(self, screen: Screen[T]) -> None:
        super().__init__()
        self._question = screen

    def on_mount(self) -> None:
        self.push_screen(self._question, self.exit)  # pyright: ignore[reportArgumentType]

    def action_interrupt(self) -> None:
        self.exit(return_code=INTERRUPTED)


async def fill_in(question: FormElicitation) -> FormAnswer:
    return await _ask(FormScreen(question)) or FormAnswer("cancel")


async def review(sampling: SamplingReview) -> SamplingReview | None:
    return await _ask(SamplingScreen(sampling))


async def _ask(screen: Screen[T]) -> T | None:
    """What the person answered. Ctrl-C interrupts the command; cancelling this removes the screen."""
    app = QuestionApp(screen)
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
