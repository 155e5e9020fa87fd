"""Shows a sampling request of a server, or the model's answer. The person sends it, changes its text, or
refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static, TextArea

from dragoman.cleaning import one_line, visible
from dragoman.interaction import SamplingReview, blocks_text
from dragoman.tui.question_view import QuestionView, heading

SHOWN_CHARACTERS: Final = 20_000
"""The most characters of one text above the message that are shown at first."""


class SamplingView(QuestionView["SamplingReview | None"]):
    """A review in which the last message of the request, or the answer, can be edited."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "Send"),
        Binding("escape", "answer(None)", "Refuse"),
        # With priority, because the editor would take these keys, and text above or below it stay hidden.
        Binding("pageup", "scroll_body(-1)", "and PgDn scroll", priority=True),
        Binding("pagedown", "scroll_body(1)", show=False, priority=True),
        Binding("ctrl+o", "show_all", "Show all of it"),
    ]

    def __init__(self, review: SamplingReview) -> None:
        super().__init__()
        self._review = review
        self._written = visible(review.text)
        self._rows = [(name, text, Static()) for name, text in _rows(review)]
        self._is_cut = any(len(text) > SHOWN_CHARACTERS for _, text, _ in self._rows)

    def compose(self) -> ComposeResult:
        request, answer = self._review.request, self._review.answer
        asks = "asks your model for an answer" if answer is None else "is about to be sent this answer"
        yield Static(heading(request.server, asks, request.calls), classes="heading")
        with VerticalScroll(classes="body", can_focus=False):
            self._show_rows(SHOWN_CHARACTERS)
            yield from (row for _, _, row in self._rows)
            yield Static(Text("message" if answer is None else "answer", style="cyan"))
            yield TextArea(self._written, classes="text", compact=True)

    def _show_rows(self, limit: int | None) -> None:
        for name, text, row in self._rows:
            row.update(Text.assemble((f"{name:<9} ", "cyan"), visible(text, limit)))

    def keys(self) -> str:
        every = super().keys()
        return every if self._is_cut else every.rpartition(" · ")[0]

    def action_show_all(self) -> None:
        """Shows the complete texts. At first long texts are cut, because their layout takes seconds."""
        if self._is_cut:
            self._is_cut = False
            self._show_rows(None)
            self.post_message(self.KeysChanged())

    def begin(self) -> None:
        self.query_one(TextArea).focus()

    def action_scroll_body(self, direction: int) -> None:
        """Scrolls to the end of the body, then through the text that can be changed, and back."""
        body, text = self.query_one(".body", VerticalScroll), self.query_one(TextArea)
        if direction > 0 and body.scroll_y >= body.max_scroll_y:
            text.action_cursor_page_down()
        elif direction < 0 and text.scroll_y > 0:
            text.action_cursor_page_up()
        else:
            super().action_scroll_body(direction)

    def on_text_area_changed(self) -> None:
        self.query_one(TextArea).scroll_visible(animate=False)

    def action_send(self) -> None:
        changed = self.query_one(TextArea).text
        self.answer(self._review if changed == self._written else self._review.with_text(changed))


def _rows(review: SamplingReview) -> Iterable[tuple[str, str]]:
    """The rows above the text that can be edited."""
    request, answer = review.request, review.answer
    if answer is not None:
        rows = [("model", one_line(answer.model, 100)), ("also sent", non_text_content(answer.content))]
        return [(name, text) for name, text in rows if text]
    rows = [("system", request.system_prompt)]
    rows += [(message.role, blocks_text(message.content)) for message in request.messages[:-1]]
    rows += [("also sent", non_text_content(message.content)) for message in request.messages[-1:]]
    rows += request.further_texts
    rows += [("limit", f"{request.max_tokens} tokens")]
    return [(name, text) for name, text in rows if text]


def non_text_content(blocks: Iterable[Mapping[str, Any]]) -> str:
    """The content that is sent together with the text that can be edited."""
    return blocks_text(block for block in blocks if block.get("type") != "text")
