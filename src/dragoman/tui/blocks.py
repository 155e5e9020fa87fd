"""The blocks of a conversation on the screen: prompts, answers, tool calls, notes. Values without widgets.

Old blocks have no widget; one is created when the person scrolls to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from dragoman.calls.outcome import CallOutcome
from dragoman.content.blocks import ImageBlock
from dragoman.errors import PermissionRefused
from dragoman.tui.markdown_text import pieces

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

ToolState = Literal["running", "done", "error", "refused", "interrupted"]


@dataclass(slots=True)
class PromptBlock:
    """A message of the person."""

    text: str


@dataclass(slots=True)
class AnswerBlock:
    """Text of the model, as Markdown. A long answer is several of these."""

    text: str = ""


@dataclass(slots=True)
class NoteBlock:
    """A message of the application."""

    text: str
    is_problem: bool = False


@dataclass(slots=True)
class ToolBlock:
    """One tool call of the model."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    state: ToolState = "running"
    progress: float | None = None
    """The share that is done, from 0 to 1; None if the server has not reported it."""
    message: str = ""
    """The server's progress message."""
    result: str = ""
    images: tuple[ImageBlock, ...] = field(default=())
    seconds: float = 0.0
    is_open: bool = False
    """Whether arguments and result are shown completely."""

    def finish(self, outcome: CallOutcome) -> None:
        refused = isinstance(outcome.error, PermissionRefused)
        self.state = "refused" if refused else "error" if outcome.is_error else "done"
        self.result, self.seconds = outcome.text, outcome.duration_seconds
        self.images = tuple(block for block in outcome.content if isinstance(block, ImageBlock))

    def interrupt(self) -> None:
        if self.state == "running":
            self.state = "interrupted"


Block = PromptBlock | AnswerBlock | NoteBlock | ToolBlock


def blocks_of(history: Sequence[ModelMessage]) -> list[Block]:
    """The blocks of a stored conversation. Of messages to the model, only the person's text is shown."""
    from pydantic_ai.messages import TextPart, ToolCallPart, ToolReturnPart, UserPromptPart

    from dragoman.agent.context import SUMMARY_HEADING
    from dragoman.agent.conversion import read_arguments, recorded_texts_in

    blocks: list[Block] = []
    calls: dict[str, ToolBlock] = {}
    for message in history:
        recorded = recorded_texts_in(message)
        blocks += [PromptBlock(text) for text in recorded or ()]
        for part in message.parts:
            match part:
                case UserPromptPart(content=str(text)) if text.startswith(SUMMARY_HEADING):
                    blocks.append(NoteBlock(text))
                case UserPromptPart() if recorded is None:
                    blocks.append(PromptBlock(part.content if isinstance(part.content, str) else "[…]"))
                case TextPart() if part.content.strip():
                    blocks += [AnswerBlock(piece) for piece in pieces(part.content)]
                case ToolCallPart():
                    calls[part.tool_call_id] = ToolBlock(
                        part.tool_call_id, part.tool_name, read_arguments(part)[0]
                    )
                    blocks.append(calls[part.tool_call_id])
                case ToolReturnPart() if part.tool_call_id in calls:
                    _add_result(calls[part.tool_call_id], part.content, part.outcome)
                case _:
                    pass
    return blocks


_STATES: Mapping[str, ToolState] = {"failed": "error", "denied": "refused", "interrupted": "interrupted"}


def _add_result(call: ToolBlock, content: Any, outcome: str) -> None:
    call.result = content if isinstance(content, str) else "\n".join(map(_as_text, content))
    call.state = _STATES.get(outcome, "done")


def _as_text(part: Any) -> str:
    return part if isinstance(part, str) else f"[{getattr(part, 'media_type', 'data')}]"
