"""Shows a permission question: the tool, its arguments, and for a change of a file the exact difference. All
text is shown as data.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Click
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from dragoman import paths
from dragoman.cleaning import one_line, visible
from dragoman.config.scopes import Sources
from dragoman.interaction import PermissionAnswer, PermissionQuestion
from dragoman.mixed_alphabets import mixed_words
from dragoman.permissions.decide import DEFINITION_CHANGED
from dragoman.permissions.rules import Behaviour
from dragoman.tui.question_view import QuestionArea, QuestionView
from dragoman.tui.tool_card import OPEN_CHARACTERS

RISKS: Final = {
    "reads": ("declared read-only", "$text-success"),
    "writes": ("not declared read-only", "$text-warning"),
    "destroys": ("declared destructive", "bold $text-error"),
}
REFUSE_KEY: Final = "t"
FOLDER_KEY: Final = "f"
NO_RULE: Final = "no rule allows it"
"""The reason of a question that no rule requires (`permissions/decide.py`)."""
FOLDER_CHARACTERS: Final = 200
"""The length of the folder's path above the arguments; a longer path would move them off the screen."""
_DIFF_STYLES: Final = {"+": "$text-success", "-": "$text-error", "@": "dim"}


def answers_to(question: PermissionQuestion) -> dict[str, tuple[str, PermissionAnswer]]:
    """The answers by key, each with its text."""
    answers = {"y": ("Yes, this once", PermissionAnswer(True))}
    if question.is_rememberable:
        answers["s"] = ("Yes, for this session", PermissionAnswer(True, for_session=True))
    if question.is_rememberable and question.rule:
        # The digest is not shown. A command may contain another @.
        rule = one_line(question.rule.partition("@")[0] if question.server else question.rule, 120)
        answers["a"] = (f"Yes, always: {rule}", PermissionAnswer(True, always="user"))
        answers["p"] = ("Yes, always in this project", PermissionAnswer(True, always="local"))
    if question.is_rememberable and question.server_rule:
        words = f"Yes, always, for every tool of {one_line(question.server, 60)}"
        answers["w"] = (words, PermissionAnswer(True, always="user", whole_server=True))
    answers["n"] = ("No", PermissionAnswer(False))
    answers[REFUSE_KEY] = ("No, with a message to the model", PermissionAnswer(False))
    return answers


def question_text(question: PermissionQuestion) -> Content:
    """The tool, its server, and the reason for the question."""
    words, style = RISKS[question.risk]
    by = " by the server" if question.server and question.risk != "writes" else ""
    who = one_line(question.server, 80) or "a built-in tool"
    parts: list[str | tuple[str, str]] = [("? ", "bold $text-warning"), (who, "bold"), ": "]
    parts.append((one_line(question.tool, 100), "bold"))
    if question.agent:
        parts.append(f", called by the agent {one_line(question.agent, 80)}")
    parts += ["\n  ", (words + by, style)]
    if question.open_world:
        parts.append(" · may access external systems")
    title = one_line(question.title, 100)
    if title and title not in question.tool:
        parts.append(f" · “{title}”")
    if question.folder:
        parts.append(f"\n  in the folder {one_line(question.folder, FOLDER_CHARACTERS)}")
    for warning in _warnings(question):
        parts.append((f"\n  ! {warning}", "bold $text-error"))
    if question.reason and question.reason != DEFINITION_CHANGED:  # shown as a warning
        parts.append((f"\n  {one_line(question.reason, 300)}", "dim"))
    return Content.assemble(*parts)


def _warnings(question: PermissionQuestion) -> Iterator[str]:
    if mixed := mixed_words((question.title, question.arguments)):
        yield f"These words mix alphabets: {', '.join(mixed)}"
    if question.has_changed:
        yield "It was allowed before, and has changed since."


def arguments_text(question: PermissionQuestion) -> Content:
    from dragoman.tui.tool_card import json_line

    if not question.arguments:
        return Content.styled("(no arguments)", "dim")
    lines: list[Content] = []
    for name, value in question.arguments.items():
        is_text = isinstance(value, str) and "\n" in value
        text = f"\n    {visible(value).replace(chr(10), chr(10) + '    ')}" if is_text else json_line(value)
        lines.append(Content.assemble((f"{json_line(str(name))[1:-1]}: ", "$text-accent"), text))
    if len(question.folder) > FOLDER_CHARACTERS:
        lines.append(Content.assemble(("in the folder ", "dim"), one_line(question.folder)))
    return Content("\n").join(lines)


def diff_text(diff: str) -> Content:
    """The difference; lines begin with + and -, so that they can be distinguished without colours."""
    lines = visible(diff, OPEN_CHARACTERS).split("\n")
    return Content("\n").join([Content.styled(line, _DIFF_STYLES.get(line[:1], "")) for line in lines])


def folder_rules(question: PermissionQuestion, folder: Path) -> tuple[tuple[Behaviour, str], ...]:
    """The rules that allow every change of files in the folder, except Dragoman's own files and git's, whose
    hooks and settings name programs that git runs.

    There are no such rules if the question is about something else, if a rule requires the question, or if
    the person's settings are in the folder: the answer must not allow changes of rules and hooks.
    """
    path = str(question.arguments.get("file_path", ""))
    is_change = not question.server and question.tool in ("Edit", "Write")
    if not is_change or question.reason != NO_RULE or not Path(path).is_relative_to(folder):
        return ()
    own_places = (paths.config_dir().resolve(), *paths.links_in_config().values())
    if any(each.is_relative_to(folder) for each in own_places):
        return ()
    local = Sources.local_file_in(folder)
    own = (f"{_quoted(local.parent.resolve())}/*", _quoted(local.resolve()))
    of_git = tuple(f"{_quoted(folder)}/{each}" for each in (".git/*", "*.git/*", "*.git"))
    asked = (*own, *of_git)
    files: list[tuple[Behaviour, str]] = [
        ("allow", f"{_quoted(folder)}/*"),
        *(("ask", each) for each in asked),
    ]
    return tuple((kind, f'{tool}(file_path="{file}")') for tool in ("Edit", "Write") for kind, file in files)


def _quoted(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"').replace("*", "\\*")


class _Answers(OptionList):
    def on_click(self, event: Click) -> None:
        if any(isinstance(each, QuestionArea) and each.is_new for each in self.ancestors):
            event.prevent_default()


class PermissionView(QuestionView[PermissionAnswer]):
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"choose('{key}')", show=False) for key in "yfspawnt"),
        Binding("pageup", "scroll_body(-1)", "and PgDn scroll"),
        Binding("pagedown", "scroll_body(1)", show=False),
    ]

    def __init__(
        self, question: PermissionQuestion, diff: str | None = None, *, is_in_folder: bool = False
    ) -> None:
        """`diff`: the change that the call would make, shown in place of its arguments. `is_in_folder`:
        whether all changes of files in the folder can be allowed (`folder_rules`)."""
        super().__init__()
        self.allows_folder = False
        """Whether the person allowed all changes of files in the folder."""
        self._question = question
        self._diff = diff
        self._answers = answers_to(question)
        if is_in_folder:
            words = "Yes, and every change of files in this folder, for this session"
            first, *others = self._answers.items()
            self._answers = dict([first, (FOLDER_KEY, (words, PermissionAnswer(True))), *others])

    def compose(self) -> ComposeResult:
        yield Static(question_text(self._question), markup=False, classes="heading")
        with VerticalScroll(classes="body", can_focus=False):
            if self._diff is None:
                yield Static(arguments_text(self._question), markup=False)
            else:
                path = one_line(str(self._question.arguments.get("file_path", "")), 500)
                yield Static(Content.styled(path, "bold"), markup=False)
                yield Static(diff_text(self._diff), markup=False, classes="diff")
        yield _Answers(
            *(
                Option(Content.assemble((key, "bold"), f"  {words}"), id=key)
                for key, (words, _) in self._answers.items()
            ),
            compact=True,
            markup=False,
        )
        message = Input(placeholder="What should the model do instead? Enter sends, Esc goes back")
        message.display = False
        yield message

    def begin(self) -> None:
        """Selects no answer: an Enter that was meant for the prompt must not allow the call."""
        options = self.query_one(OptionList)
        options.focus()
        options.highlighted = None

    def keys(self) -> str:
        if self.query_one(Input).display:
            return "Enter refuses with this message · Esc back to the answers"
        return "letter or ↑↓ Enter answers · PgUp/PgDn scroll · Esc interrupts the turn"

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_choose(event.option_id or "n")

    def action_choose(self, key: str) -> None:
        if key not in self._answers or self.query_one(Input).has_focus:
            return
        self.allows_folder = key == FOLDER_KEY
        if key == REFUSE_KEY:
            self._ask_for_message(True)
        else:
            self.answer(self._answers[key][1])

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.answer(PermissionAnswer(False, event.value.strip() or None))

    def key_escape(self) -> bool:
        """Closes the message field. Without one, the application interrupts the turn."""
        if not self.query_one(Input).display:
            return False
        self._ask_for_message(False)
        return True

    def _ask_for_message(self, is_asked: bool) -> None:
        message, options = self.query_one(Input), self.query_one(OptionList)
        message.display, options.display = is_asked, not is_asked
        (message if is_asked else options).focus()
        self.post_message(self.KeysChanged())
