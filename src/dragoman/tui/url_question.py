"""Widgets for URL elicitation: a server asks the person to open a web page."""

from __future__ import annotations

from typing import ClassVar, Literal

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from dragoman.cleaning import one_line, visible
from dragoman.interaction import UrlElicitation
from dragoman.tui.question_view import QuestionView, heading

Action = Literal["accept", "decline", "cancel"]


class UrlView(QuestionView[Action]):
    """Shows the whole URL and its host. It does not open the URL."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer('accept')", "Yes, open it"),
        Binding("n", "answer('decline')", "No"),
        Binding("escape", "answer('cancel')", "Leave"),
    ]

    def __init__(self, question: UrlElicitation) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        question = self._question
        asks = "asks you to open a web page first"
        yield Static(heading(question.server, asks, question.calls), classes="heading")
        text = Text()
        for warning in question.warnings:
            text.append(f"! {one_line(warning, 400)}\n", style="red")
        text.append("host  ").append(one_line(question.host, 300), style="bold").append("\n")
        text.append(visible(question.url, 8192), style="cyan")
        text.append("\n\nNothing was opened or fetched. Open it only if you trust the server.", style="dim")
        if question.message:  # below the host, and in one line: it could look like another host
            text.append(f"\n\n“{one_line(question.message, 4096)}”")
        with VerticalScroll(classes="body"):
            yield Static(text)

    def begin(self) -> None:
        self.query_one(VerticalScroll).focus()


class UrlWaitView(QuestionView[bool]):
    """Asks whether the person is done with the page."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Done, continue"),
        Binding("n,escape", "answer(False)", "Give up"),
    ]

    def __init__(self, question: UrlElicitation, *, is_open: bool) -> None:
        """`is_open`: whether the page was opened in a browser."""
        super().__init__()
        self._question = question
        self._is_open = is_open

    def compose(self) -> ComposeResult:
        question = self._question
        doing = "The page is open in your browser" if self._is_open else "Open this page in a browser"
        text = Text.assemble(
            (one_line(question.server, 80), "bold"),
            " waits until you are done with the page.\n",
            doing,
            ":\n",
        )
        text.append(visible(question.url, 8192), style="cyan")
        with VerticalScroll(classes="body"):
            yield Static(text)

    def begin(self) -> None:
        self.query_one(VerticalScroll).focus()
