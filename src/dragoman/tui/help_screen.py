"""The screen `/help`: keys and commands."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static

from dragoman.tui.commands import COMMANDS

KEYS: Final = {
    "Enter": "send; while the model works: queue",
    "Ctrl+J, Shift+Enter": "new line",
    "↑ ↓": "earlier messages; ↑ also takes back a queued one",
    "Tab": "take a completion, or go to the tool calls",
    "Enter, Space": "at a tool call: open or close it",
    "Ctrl+O": "open or close the last tool call",
    "Ctrl+G": "answer a question while a message is being written",
    "PgUp PgDn": "scroll the conversation",
    "Shift+Tab": "permission mode: default, auto, plan",
    "Esc": "stop the turn and its calls; servers stay connected",
    "Ctrl+C": "copy what is selected, or stop; twice: quit",
    "Ctrl+D": "quit, in an empty field",
    "@": "add a file or a resource to the message",
    "/server:prompt": "a prompt of a server, with its arguments",
}


def help_text() -> Content:
    rows = [*KEYS.items(), ("", ""), *((f"/{name}", about) for name, about in COMMANDS.items())]
    width = max(len(name) for name, _ in rows)
    return Content("\n").join(
        [Content.assemble((f"{name:<{width}}", "bold"), f"  {about}") for name, about in rows]
    )


class HelpScreen(Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", "Back")]
    CSS_PATH = "screens.tcss"

    def compose(self) -> ComposeResult:
        yield Static("Keys and commands", markup=False, classes="title")
        with VerticalScroll(classes="content"):
            yield Static(help_text(), markup=False)
        yield Footer(show_command_palette=False)
