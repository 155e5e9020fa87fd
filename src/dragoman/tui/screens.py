"""The screens `/help`, `/context`, `/permissions` and `/resume`.

`/permissions` shows all rules, and adds and removes rules of this session. `/resume` shows earlier
conversations, the newest first.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from dragoman.agent.transcript import TranscriptInfo, transcripts
from dragoman.catalog.tokens import cost_of, estimate
from dragoman.cleaning import one_line
from dragoman.errors import DragomanError
from dragoman.host import Host
from dragoman.names import counted, shell_quoted
from dragoman.permissions.modes import MEANINGS
from dragoman.permissions.rules import BEHAVIOURS, Behaviour, Rule
from dragoman.tui.commands import COMMANDS
from dragoman.tui.status_line import short_count

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
                f"{part.name:<{width}}  {short_count(part.tokens):>7}  {percent}  ", (bar, "$text-accent"),
                (f" {part.detail}" if part.detail else "", "dim"),
            )
        )  # fmt: skip
    lines += [Content(""), Content(f"about {short_count(used)} of {short_count(limit)} tokens")]
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


MARKS: Final = {
    "deny": ("✗", "$text-error"),
    "ask": ("?", "$text-warning"),
    "allow": ("✓", "$text-success"),
}
RULE_HINT: Final = "Write allow, ask or deny, and a rule: allow mcp__server__tool"
SESSION: Final = "dynamic"
"""The scope of rules that are not in a file."""


def rule_text(rule: Rule) -> Content:
    mark, style = MARKS[rule.behaviour]
    source = "this session" if rule.scope == SESSION else f"{rule.scope}: {one_line(rule.source, 200)}"
    return Content.assemble(
        (f"{mark} {rule.behaviour:<5} ", style), (one_line(rule.text, 200), "bold"), (f"  {source}", "dim")
    )


def read_rule(text: str) -> tuple[Behaviour, str] | None:
    """Parses `allow mcp__box`; None if the text does not begin with a behaviour."""
    kind, _, rule = text.strip().partition(" ")
    for found in BEHAVIOURS:
        if found == kind and rule.strip():
            return found, rule.strip()
    return None


class PermissionsScreen(Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back"),
        Binding("a", "add", "Add a rule for this session"),
        Binding("d,delete", "remove", "Remove"),
    ]
    CSS_PATH = "screens.tcss"

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host
        self._rules: list[Rule] = []

    def compose(self) -> ComposeResult:
        yield Static("", markup=False, classes="title")
        yield OptionList(classes="content", markup=False)
        yield Static("", markup=False, classes="problem")
        entry = Input(placeholder="allow mcp__server__tool, ask Bash(git push *), deny mcp__server")
        entry.display = False
        yield entry
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self._show()
        self.query_one(OptionList).focus()

    def _show(self) -> None:
        mode = self._host.permission_mode
        title = f"Permission rules. Where none applies, mode {mode}: {MEANINGS[mode]}."
        self.query_one(".title", Static).update(title)
        self._rules = sorted(self._host.rules, key=lambda rule: BEHAVIOURS.index(rule.behaviour))
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(rule_text(rule)) for rule in self._rules])
        if not self._rules:
            options.add_option(Option("There are no rules.", disabled=True))

    def _show_problem(self, problem: str) -> None:
        self.query_one(".problem", Static).update(problem)

    def action_add(self) -> None:
        entry = self.query_one(Input)
        entry.display = True
        entry.focus()

    def action_back(self) -> None:
        entry = self.query_one(Input)
        if not entry.display:
            self.dismiss()
            return
        entry.display = False
        self.query_one(OptionList).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        found = read_rule(event.value)
        if found is None:
            self._show_problem(RULE_HINT)
            return
        try:
            self._host.add_rule(*found)
        except DragomanError as error:
            self._show_problem(one_line(str(error), 300))
            return
        event.input.value = ""
        self._show_problem("")
        self.action_back()
        self._show()

    def action_remove(self) -> None:
        place = self.query_one(OptionList).highlighted
        if place is None or place >= len(self._rules):
            return
        rule = self._rules[place]
        if self._host.remove_rule(rule.behaviour, rule.text):
            self._show_problem("")
            self._show()
        else:
            self._show_problem(
                "This rule is in a file. To remove it there: dragoman permissions remove "
                f"{one_line(shell_quoted(rule.text), 200)}"
            )


SHOWN_CONVERSATIONS: Final = 200


def conversation_row(info: TranscriptInfo) -> Content:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(info.changed_at))
    return Content.assemble(
        (f"{when}  ", "dim"), one_line(info.first_prompt, 200), (f"  {one_line(info.model, 60)}", "dim")
    )


class ResumeScreen(Screen["str | None"]):
    """Returns the id of a conversation, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Back"),
        Binding("a", "toggle_all", "All folders"),
    ]
    CSS_PATH = "screens.tcss"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._is_all = False

    def compose(self) -> ComposeResult:
        yield Static("", markup=False, classes="title")
        yield OptionList(classes="content", markup=False)
        yield Footer(show_command_palette=False)

    async def on_mount(self) -> None:
        await self._show()

    async def _show(self) -> None:
        found = await asyncio.to_thread(transcripts, None if self._is_all else self._folder)
        self.show([info for info in found if info.first_prompt])

    def show(self, found: Sequence[TranscriptInfo]) -> None:
        where = "all folders" if self._is_all else one_line(str(self._folder), 200)
        self.query_one(".title", Static).update(f"Conversations in {where}: Enter continues one")
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(
            [Option(conversation_row(info), id=info.id) for info in found[:SHOWN_CONVERSATIONS]]
        )
        if not found:
            options.add_option(Option("There are no conversations yet.", disabled=True))
        options.focus()

    async def action_toggle_all(self) -> None:
        self._is_all = not self._is_all
        await self._show()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)
