"""A server's question to open a web page, on the screen."""

from __future__ import annotations

from typing import ClassVar, Literal

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from dragoman.cleaning import one_line, visible
from dragoman.interaction import UrlElicitation
from dragoman.tui.heading import heading

Action = Literal["accept", "decline", "cancel"]


class UrlScreen(Screen[Action]):
    """Shows the whole URL, with its host apart. It opens nothing itself."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer('accept')", "Yes, open it", priority=True),
        Binding("n", "answer('decline')", "No", priority=True),
        Binding("escape", "answer('cancel')", "Leave", priority=True),
    ]
    CSS_PATH = "questions.tcss"

    def __init__(self, question: UrlElicitation) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        question = self._question
        asks = "asks you to open a web page first"
        yield Static(heading(question.server, asks, question.message, question.calls), id="heading")
        text = Text.assemble("host  ", (one_line(question.host, 300), "bold"), "\n")
        text.append(visible(question.url, 8192), style="cyan")
        for warning in question.warnings:
            text.append(f"\n! {one_line(warning, 400)}", style="red")
        text.append("\n\nNothing was opened or fetched. Open it only if you trust the server.", style="dim")
        with VerticalScroll(id="body"):
            yield Static(text)
        yield Footer(show_command_palette=False)

    def action_answer(self, action: Action) -> None:
        self.dismiss(action)
