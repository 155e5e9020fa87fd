"""The screens `/help`, with keys and commands, and `/context`, with the parts of the model's context."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static

from dragoman.catalog.tokens import cost_of, estimate
from dragoman.cleaning import one_line
from dragoman.names import counted
from dragoman.tui.commands import COMMANDS
from dragoman.tui.status_line import short

if TYPE_CHECKING:
    from dragoman.agent.session import AgentSession

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
BAR_CELLS: Final = 30
BUILT_IN: Final = "built-in tools"


def help_text() -> Content:
    rows = [*KEYS.items(), ("", ""), *((f"/{name}", about) for name, about in COMMANDS.items())]
    width = max(len(name) for name, _ in rows)
    return Content("\n").join(
        [Content.assemble((f"{name:<{width}}", "bold"), f"  {about}") for name, about in rows]
    )


class ContextPart(Struct, frozen=True):
    name: str
    tokens: int
    detail: str = ""


def parts_of(session: AgentSession) -> list[ContextPart]:
    """The parts of the next request, with estimated tokens."""
    from dragoman.agent.context import shares

    parts = [ContextPart("system prompt", estimate(session.conversation.instructions.encode()))]
    costs, counts = defaultdict[str, int](int), defaultdict[str, int](int)
    for tool in session.toolbox.tools():
        name = f"tools of {one_line(tool.server, 40)}" if tool.server else BUILT_IN
        costs[name] += cost_of(tool)
        counts[name] += 1
    parts += [ContextPart(name, cost, counted(counts[name], "tool")) for name, cost in costs.items()]
    parts += [ContextPart(kind, tokens) for kind, tokens in shares(session.conversation.history).items()]
    if waiting := len(session.toolbox.deferred()):
        parts.append(ContextPart("deferred tools", 0, f"{counted(waiting, 'tool')}, found with tool_search"))
    return parts


def context_text(parts: Sequence[ContextPart], limit: int) -> Content:
    """A row with a bar for each part, then the free tokens."""
    used = sum(part.tokens for part in parts)
    rows = [*parts, ContextPart("free", max(0, limit - used))]
    width = max(len(part.name) for part in rows)
    largest = max(1, *(part.tokens for part in parts))
    lines: list[Content] = []
    for part in rows:
        bar = "" if part.name == "free" else "█" * round(BAR_CELLS * part.tokens / largest)
        percent = f"{part.tokens / limit:6.1%}" if limit else ""
        lines.append(
            Content.assemble(
                f"{part.name:<{width}}  {short(part.tokens):>7}  {percent}  ", (bar, "$text-accent"),
                (f" {part.detail}" if part.detail else "", "dim"),
            )
        )  # fmt: skip
    lines += [Content(""), Content(f"about {short(used)} of {short(limit)} tokens")]
    return Content("\n").join(lines)


class TextScreen(Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", "Back")]
    CSS_PATH = "screens.tcss"

    def __init__(self, title: str, text: Content) -> None:
        super().__init__()
        self._heading = title
        self._text = text

    def compose(self) -> ComposeResult:
        yield Static(self._heading, markup=False, classes="title")
        with VerticalScroll(classes="content"):
            yield Static(self._text, markup=False)
        yield Footer(show_command_palette=False)


def help_screen() -> TextScreen:
    return TextScreen("Keys and commands", help_text())


def context_screen(parts: Sequence[ContextPart], limit: int) -> TextScreen:
    return TextScreen("Context: what the next request consists of", context_text(parts, limit))
