"""A form of a server on the screen: a widget for each field, checked before it is sent.

Text from servers is cleaned, and never parsed as markup.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal, cast

from msgspec import UNSET
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import DescendantFocus
from textual.widget import Widget
from textual.widgets import Checkbox, Input, RadioButton, RadioSet, Select, SelectionList, Static
from textual.widgets.selection_list import Selection

from dragoman.cleaning import one_line, visible
from dragoman.forms import FieldValue, FormField, completed, problems_of, value_of
from dragoman.interaction import FormAnswer, FormElicitation
from dragoman.tui.question_view import QuestionView, heading

RADIO_LIMIT: Final = 6
"""The most choices that are shown as radio buttons; more are shown in a select list."""
LABEL_LIMIT: Final = 60
SECRET: Final = "This field asks for a secret. The server sees what you enter."
_INPUT_TYPES: Final = {"text": "text", "number": "number", "integer": "integer"}
_EXAMPLES: Final = {
    "email": "name@example.com",
    "uri": "https://example.com/",
    "date": "2026-07-28",
    "date-time": "2026-07-28T12:00:00Z",
}


class FieldView(Vertical):
    """One field: its label, its editor, and the problem with its value."""

    def __init__(self, field: FormField) -> None:
        super().__init__(classes="field")
        self.field = field
        self._problem = Static("", classes="problem")
        self.editor = _editor(field)

    def compose(self) -> ComposeResult:
        label = Text(one_line(self.field.label, LABEL_LIMIT), style="bold")
        if self.field.is_required:
            label.append(" *", style="red")
        yield Static(label, classes="label")
        if self.field.description:
            yield Static(Text(one_line(self.field.description, 300), style="dim"))
        if self.field.is_secret:
            yield Static(Text(SECRET, style="red"))
        yield self.editor
        yield self._problem

    def show_problem(self, problem: str) -> None:
        self._problem.update(Text(one_line(problem, 200), style="red"))
        self._problem.display = bool(problem)

    def on_mount(self) -> None:
        self._problem.display = False

    def value(self) -> FieldValue | None:
        """The entered value; None if there is none. Raises `ValueError`."""
        match self.editor:
            case Input():
                text = self.editor.value
                return value_of(self.field, text) if text else None
            case Checkbox():
                return self.editor.value
            case RadioSet():
                place = self.editor.pressed_index
                return self.field.choices[place].value if place >= 0 else None
            case Select():
                chosen: Any = self.editor.value  # pyright: ignore[reportUnknownMemberType]
                return chosen if isinstance(chosen, str) else None
            case _:
                selected = cast("SelectionList[str]", self.editor).selected
                chosen = tuple(choice.value for choice in self.field.choices if choice.value in selected)
                return chosen if chosen or self.field.is_required else None


def _editor(field: FormField) -> Widget:
    default: Any = None if field.default is UNSET else field.default
    match field.kind:
        case "boolean":
            return Checkbox("yes", bool(default), compact=True)
        case "choice" if len(field.choices) <= RADIO_LIMIT:
            buttons = [
                RadioButton(Text(one_line(choice.title, 100)), choice.value == default)  # pyright: ignore[reportArgumentType]
                for choice in field.choices
            ]
            return RadioSet(*buttons, compact=True)
        case "choice":
            # A plain string would be parsed as markup.
            options: Any = [(Text(one_line(choice.title, 100)), choice.value) for choice in field.choices]
            return Select(options, compact=True, **({} if default is None else {"value": default}))
        case "choices":
            chosen = default or ()
            return SelectionList(
                *(
                    Selection(Text(one_line(choice.title, 100)), choice.value, choice.value in chosen)
                    for choice in field.choices
                ),
                compact=True,
            )
        case _:
            return Input(
                "" if default is None else str(default),
                placeholder=_EXAMPLES.get(field.format or "", ""),
                type=_INPUT_TYPES[field.kind],  # pyright: ignore[reportArgumentType]
                password=field.is_secret,
                compact=True,
            )


class FormView(QuestionView[FormAnswer]):
    """A form. The answer is a `FormAnswer`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "Send"),
        Binding("ctrl+n", "answer_without('decline')", "No, decline"),
        Binding("escape", "answer_without('cancel')", "Leave"),
    ]

    def __init__(self, question: FormElicitation) -> None:
        super().__init__()
        self._question = question
        self._fields: list[FieldView] = []

    def compose(self) -> ComposeResult:
        question = self._question
        self._fields = [FieldView(field) for field in question.fields]  # widgets need a running app
        yield Static(heading(question.server, "asks for information", question.calls), classes="heading")
        with VerticalScroll(classes="body", can_focus=not self._fields):
            if question.message:
                yield Static(Text(f"“{visible(question.message, 4096)}”\n"))
            yield from self._fields

    def begin(self) -> None:
        if self._fields:
            self._fields[0].editor.focus(scroll_visible=False)
        else:
            self.query_one(VerticalScroll).focus()

    def fit(self, rows: int) -> None:
        super().fit(rows)
        if self.screen.focused is not None:
            self._show_field(self.screen.focused)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        self._show_field(event.widget)

    def _show_field(self, editor: Widget) -> None:
        """Scrolls to the field with its label, so that a long message does not hide the field."""
        view = next((each for each in editor.ancestors_with_self if isinstance(each, FieldView)), None)
        if view is not None:
            self.call_after_refresh(view.scroll_visible, animate=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in the last field sends the form."""
        if self._fields and event.input is self._fields[-1].editor:
            self.action_send()
        else:
            self.screen.focus_next()

    def action_send(self) -> None:
        content, problems = self._content()
        for view in self._fields:
            view.show_problem(problems.get(view.field.name, ""))
        wrong = next((view for view in self._fields if view.field.name in problems), None)
        if wrong is None:
            self.answer(FormAnswer("accept", content))
        else:
            wrong.editor.focus()

    def action_answer_without(self, action: Literal["decline", "cancel"]) -> None:
        self.answer(FormAnswer(action))

    def _content(self) -> tuple[dict[str, Any], dict[str, str]]:
        """The entered values, and the problems by field."""
        content: dict[str, Any] = {}
        problems: dict[str, str] = {}
        for view in self._fields:
            try:
                value = view.value()
            except ValueError as problem:
                problems[view.field.name] = str(problem)
                continue
            if value is not None or view.field.default is not UNSET:  # None: the person removed the default
                content[view.field.name] = value
        whole = completed(self._question.fields, content)
        return content, {**problems_of(self._question.fields, whole), **problems}
