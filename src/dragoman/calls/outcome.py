"""What a call comes to.

I own: `CallOutcome`, the one value every front end and model gets. A tool that reports an error, a
refusal, and an error the server answers are outcomes; only failures of the plumbing are raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType, structs

from dragoman.cleaning import visible
from dragoman.content.blocks import Block, TextBlock
from dragoman.content.prepare import Prepared
from dragoman.content.result import ToolResult, Undecoded, decoded
from dragoman.content.spill import Saved
from dragoman.errors import CallError, MalformedReply
from dragoman.wire.codec import Unreadable


class CallOutcome(Struct, frozen=True, kw_only=True):
    server: str
    tool: str
    """The qualified name that was called."""
    content: tuple[Block, ...] = ()
    is_error: bool = False
    error: CallError | None = None
    """Set when the call did not come to a result of the tool."""
    meta: Mapping[str, Any] | None = None
    duration_seconds: float = 0.0
    structured_content: Any = UNSET
    saved: tuple[Saved, ...] = ()
    """Files with what was too large for a model, or is not for reading."""
    problems: tuple[str, ...] = ()
    """What is wrong with the result though the call went well: it does not fit its own schema …"""

    @property
    def text(self) -> str:
        """Everything that can be read, as one text."""
        return "\n".join([block.as_text() for block in self.content])

    @property
    def structured(self) -> Any:
        """`structuredContent`; None both when it is absent and when it is null (see `has_structured`).

        What is large is decoded now, each time: keep it. `MalformedReply` if it cannot be.
        """
        try:
            return None if self.structured_content is UNSET else decoded(self.structured_content)
        except Unreadable as problem:
            raise MalformedReply(self.server, f"structuredContent: {problem.detail}") from None

    @property
    def has_structured(self) -> bool:
        return not isinstance(self.structured_content, UnsetType)

    def raise_for_error(self) -> CallOutcome:
        """Raises what kept the call from a result, or a CallError if the tool itself reported one."""
        if self.error is not None:
            raise self.error
        if self.is_error:
            raise CallError(self.server, f"{self.tool} reported an error: {visible(self.text, 2048)}")
        return self


def outcome_of(
    server: str, tool: str, result: ToolResult, prepared: Prepared, duration_seconds: float
) -> CallOutcome:
    meta, left_out = result.meta, ()
    if isinstance(meta, Undecoded):
        meta, left_out = None, (f"its _meta of {meta.size_bytes} bytes is left out",)
    return CallOutcome(
        server=server,
        tool=tool,
        content=prepared.content,
        is_error=result.is_error,
        meta=meta,
        duration_seconds=duration_seconds,
        structured_content=result.structured,
        saved=prepared.saved,
        problems=(*prepared.problems, *left_out),
    )


def with_context(outcome: CallOutcome, context: Iterable[str]) -> CallOutcome:
    """The outcome, and after it what hooks have to say to the model."""
    added = tuple(TextBlock(text) for text in context)
    return structs.replace(outcome, content=(*outcome.content, *added)) if added else outcome


def outcome_of_error(server: str, tool: str, error: CallError, duration_seconds: float = 0.0) -> CallOutcome:
    """A call that ended without a result, in words a model can use."""
    text = f"{error} {error.hint}" if error.hint else str(error)
    return CallOutcome(
        server=server,
        tool=tool,
        content=(TextBlock(text),),
        is_error=True,
        error=error,
        duration_seconds=duration_seconds,
    )
