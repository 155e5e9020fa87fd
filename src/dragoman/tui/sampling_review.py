"""A server's request to the model, and the model's answer, on the screen.

The person sends it, changes its text, or refuses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static, TextArea

from dragoman.cleaning import one_line, visible
from dragoman.interaction import SamplingReview
from dragoman.tui.question_view import QuestionView, heading


class SamplingView(QuestionView["SamplingReview | None"]):
    """The last message of the request, or the answer, can be changed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "Send"),
        Binding("escape", "answer(None)", "Refuse"),
    ]

    def __init__(self, review: SamplingReview) -> None:
        super().__init__()
        self._review = review
        self._written = review.text

    def compose(self) -> ComposeResult:
        request, answer = self._review.request, self._review.answer
        asks = "asks your model for an answer" if answer is None else "is about to be sent this answer"
        yield Static(heading(request.server, asks, "", request.calls), classes="heading")
        with VerticalScroll(classes="body", can_focus=False):
            for name, text in _rows(self._review):
                yield Static(Text.assemble((f"{name:<9} ", "cyan"), visible(text, 20_000)))
            yield Static(Text("message" if answer is None else "answer", style="cyan"))
            yield TextArea(visible(self._written, 100_000), classes="text", compact=True)

    def begin(self) -> None:
        self.query_one(TextArea).focus()

    def action_send(self) -> None:
        changed = self.query_one(TextArea).text
        is_same = changed == visible(self._written, 100_000)
        self.answer(self._review if is_same else self._review.with_text(changed))


def _rows(review: SamplingReview) -> Iterable[tuple[str, str]]:
    """What is shown above the text that can be changed."""
    request, answer = review.request, review.answer
    if answer is not None:
        rows = [("model", one_line(answer.model, 100)), ("besides", others_text(answer.content))]
        return [(name, text) for name, text in rows if text]
    rows = [("system", request.system_prompt)]
    rows += [(message.role, blocks_text(message.content)) for message in request.messages[:-1]]
    rows += [("besides", others_text(message.content)) for message in request.messages[-1:]]
    rows += request.further_texts
    rows += [("limit", f"{request.max_tokens} tokens")]
    return [(name, text) for name, text in rows if text]


def blocks_text(blocks: Iterable[Mapping[str, Any]]) -> str:
    return " ".join(
        str(block["text"]) if block.get("type") == "text" else json.dumps(block, default=str)
        for block in blocks
    )


def others_text(blocks: Iterable[Mapping[str, Any]]) -> str:
    """What is sent besides the text that can be changed."""
    return blocks_text(block for block in blocks if block.get("type") != "text")
