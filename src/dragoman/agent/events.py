"""What happens in a conversation, as values that front ends show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from dragoman.calls.outcome import CallOutcome
from dragoman.cleaning import one_line
from dragoman.wire.peer import Progress


class Message(Struct, frozen=True):
    """What the person says to the model."""

    text: str
    shown: str | None = None
    """What the person wrote, if the text is not that: the text of a prompt is a server's."""

    @property
    def written(self) -> str:
        return self.text if self.shown is None else self.shown


class TextDelta(Struct, frozen=True):
    """The model wrote some more text."""

    text: str


class ThinkingDelta(Struct, frozen=True):
    """The model wrote some more of what it thinks before it answers."""

    text: str


class ToolCallStarted(Struct, frozen=True, kw_only=True):
    """The model calls a tool."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    """Empty if what the model wrote is no JSON object."""


class ToolCallProgressed(Struct, frozen=True, kw_only=True):
    """A tool reports how far it is. Comes a few times a second at most."""

    call_id: str
    tool: str
    progress: Progress


class ToolCallFinished(Struct, frozen=True, kw_only=True):
    """A tool call of the model has its outcome."""

    call_id: str
    tool: str
    outcome: CallOutcome


class ResponseFinished(Struct, frozen=True, kw_only=True):
    """The model has finished one response; with tool calls in it, another follows."""

    usage: Usage


class RetryScheduled(Struct, frozen=True, kw_only=True):
    """A request to the model failed and is made again. Text of the failed response is not valid."""

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
    """The conversation goes on, but its file cannot be written. Comes once for each conversation."""

    reason: str

    @property
    def text(self) -> str:
        return (
            f"The transcript {self.reason}. The conversation goes on. Unless the file can be written again, "
            "what is said from now on is lost when it ends."
        )


class SubagentEvent(Struct, frozen=True, kw_only=True):
    """Something that an agent did that the model gave work to."""

    call_id: str
    """Of the call that gave it the work."""
    agent: str
    agent_id: str
    event: Any
    """An `AgentEvent`."""


class QueuedSent(Struct, frozen=True):
    """Messages that were queued while the model worked are part of its next request."""

    prompts: tuple[str, ...]


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens, and what they cost."""

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
    """How one prompt was answered."""

    text: str
    """The model's last text."""
    turns: int
    """How many responses of the model it took."""
    usage: Usage
    stopped_by: StoppedBy = "end"
    """`length`: the text was cut off at the model's output limit. `hook`: a hook refused the prompt."""
    reason: str = ""
    """Of the hook."""

    @property
    def stopped_text(self) -> str:
        """Why the prompt was not answered to its end, in words; empty if it was."""
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
    | QueuedSent
    | PromptRefused
    | TranscriptIncomplete
    | SubagentEvent
)
