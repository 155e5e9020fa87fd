"""Asks one question of a server on a screen of its own, below what the terminal shows already.

For commands; the terminal application shows the same screens inside itself.
"""

from __future__ import annotations

from typing import TypeVar

from textual.app import App
from textual.screen import Screen

T = TypeVar("T")


class QuestionApp(App[T]):
    """Shows one screen, and ends with its result."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "dragoman"

    def __init__(self, screen: Screen[T]) -> None:
        super().__init__()
        self._question = screen

    def on_mount(self) -> None:
        self.push_screen(self._question, self.exit)  # pyright: ignore[reportArgumentType]


async def ask_on_screen(screen: Screen[T]) -> T | None:
    """What the person answered; None if the screen was closed without an answer. Cancelling this closes the
    screen."""
    return await QuestionApp(screen).run_async(inline=True, inline_no_clear=True, mouse=False)
