"""The screen `/permissions`: shows all rules; adds and removes rules of this session."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from dragoman.cleaning import one_line
from dragoman.errors import DragomanError
from dragoman.host import Host
from dragoman.names import shell_quoted
from dragoman.permissions.modes import MEANINGS
from dragoman.permissions.rules import BEHAVIOURS, Behaviour, Rule

MARKS: Final = {
    "deny": ("✗", "$text-error"),
    "ask": ("?", "$text-warning"),
    "allow": ("✓", "$text-success"),
}
RULE_HINT: Final = "Write allow, ask or deny, and a rule: allow mcp__server__tool"
SESSION: Final = "dynamic"
"""The scope of rules that are in no file."""


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

    def _say(self, problem: str) -> None:
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
            self._say(RULE_HINT)
            return
        try:
            self._host.add_rule(*found)
        except DragomanError as error:
            self._say(one_line(str(error), 300))
            return
        event.input.value = ""
        self._say("")
        self.action_back()
        self._show()

    def action_remove(self) -> None:
        place = self.query_one(OptionList).highlighted
        if place is None or place >= len(self._rules):
            return
        rule = self._rules[place]
        if self._host.remove_rule(rule.behaviour, rule.text):
            self._say("")
            self._show()
        else:
            self._say(
                f"It is in a file: dragoman permissions remove {one_line(shell_quoted(rule.text), 200)}"
            )
