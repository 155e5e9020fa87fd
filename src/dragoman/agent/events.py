"""Events of a conversation, which front ends show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from dragoman.calls.outcome import CallOutcome
from dragoman.cleaning import one_line
from dragoman.wire.peer import Progress


class Message(Struct, frozen=True):
    """A message of the person to the model."""

    text: str
    shown: str | None = None
    """What the person typed, if it differs from `text`: the text of a prompt comes from a server."""

    @property
    def written(self) -> str:
        """The words of the person."""
        return self.text if self.shown is None else self.shown


class TextDelta(Struct, frozen=True):
    """The model has produced more text."""

    text: str


class ThinkingDelta(Struct, frozen=True):
    """The model has produced more thinking text."""

    text: str


class ToolCallStarted(Struct, frozen=True, kw_only=True):
    """The model calls a tool."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    """The arguments; empty if the model did not write a JSON object."""


class ToolCallProgressed(Struct, frozen=True, kw_only=True):
    """A tool reports progress. Published a few times a second at most."""

    call_id: str
    tool: str
    progress: Progress


class ToolCallFinished(Struct, frozen=True, kw_only=True):
    """A tool call of the model has its outcome."""

    call_id: str
    tool: str
    outcome: CallOutcome


class ResponseFinished(Struct, frozen=True, kw_only=True):
    """The model has finished one response. If it contains tool calls, another response follows."""

    usage: Usage


class RetryScheduled(Struct, frozen=True, kw_only=True):
    """A request to the model failed and is made again. The text of the failed response must be discarded."""

    reason: str
    attempt: int
    wait_seconds: float


class ContextCompacted(Struct, frozen=True, kw_only=True):
    """The beginning of the conversation was replaced by a summary."""

    tokens_before: int
    tokens_after: int


class PromptRefused(Struct, frozen=True, kw_only=True):
    """A hook refused a message that was queued while the model worked."""

    prompt: str
    reason: str


class TranscriptIncomplete(Struct, frozen=True):
    """The transcript cannot be written; the conversation continues. Published once for each conversation."""

    reason: str

    @property
    def text(self) -> str:
        return (
            f"The transcript {self.reason}. The conversation continues. Unless the file can be written "
            "again, later messages are lost when the conversation ends."
        )


class SubagentEvent(Struct, frozen=True, kw_only=True):
    """An event of a subagent."""

    call_id: str
    """The id of the call of Task that started the subagent."""
    agent: str
    agent_id: str
    event: Any
    """An `AgentEvent`."""


class QueuedMessagesSent(Struct, frozen=True):
    """Messages that were queued while the model worked are part of its next request."""

    prompts: tuple[str, ...]


class Usage(Struct, frozen=True, kw_only=True):
    """The number of tokens, and their price."""

    input_tokens: int = 0
    """Tokens of the request, including those that were read from the provider's cache or written to it."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cost_usd: float | None = None
    """None: the price of the model is not known."""

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cost_usd=sum(costs) if costs else None,
        )

    def __sub__(self, before: Usage) -> Usage:
        cost = None if self.cost_usd is None else self.cost_usd - (before.cost_usd or 0.0)
        return Usage(
            input_tokens=self.input_tokens - before.input_tokens,
            output_tokens=self.output_tokens - before.output_tokens,
            cache_read_tokens=self.cache_read_tokens - before.cache_read_tokens,
            cost_usd=cost,
        )


StoppedBy = Literal["end", "max-turns", "length", "hook"]


class Reply(Struct, frozen=True, kw_only=True):
    """The result of one prompt."""

    text: str
    """The model's last text."""
    turns: int
    """The number of responses of the model."""
    usage: Usage
    stopped_by: StoppedBy = "end"
    """`length`: the text was cut off at the model's output limit. `hook`: a hook refused the prompt."""
    reason: str = ""
    """The reason that the hook gave."""

    @property
    def stopped_text(self) -> str:
        """A sentence about why the answer is incomplete; empty if it is complete."""
        match self.stopped_by:
            case "max-turns":
                return f"Stopped after {self.turns} turns (--max-turns)."
            case "length":
                return "The answer was cut off at the model's output limit."
            case "hook":
                return f"A hook refused the prompt: {one_line(self.reason, 500)}"
            case "end":
                return ""


AgentEvent = (
    TextDelta
    | ThinkingDelta
    | ToolCallStarted
    | ToolCallProgressed
    | ToolCallFinished
    | ResponseFinished
    | RetryScheduled
    | ContextCompacted
    | QueuedMessagesSent
    | PromptRefused
    | TranscriptIncomplete
    | SubagentEvent
)
