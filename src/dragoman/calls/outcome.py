"""`CallOutcome`, the result of a call for every front end and model.

An error that a tool reports, a refusal, and an error that a server answers are outcomes. Only failures of the
connection or of the host are raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from msgspec import UNSET, Raw, Struct, UnsetType, structs

from dragoman.calls.task_store import RunningTask
from dragoman.cleaning import one_line, value_for_model, visible
from dragoman.content.blocks import Block, TextBlock
from dragoman.content.prepare import Prepared
from dragoman.content.redact import Redactor
from dragoman.content.result import ToolResult, Undecoded, decoded
from dragoman.content.spill import Saved
from dragoman.errors import CallError, MalformedReply, RemoteError, reworded
from dragoman.wire.codec import Unreadable

TOO_DEEP: Final = "[nested too deeply to be shown]"


class CallOutcome(Struct, frozen=True, kw_only=True):
    """Content and structured content are cleaned for models: without control characters, escape sequences,
    bidirectional and invisible characters. `Host.call(raw=True)` gives what the server sent."""

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
    """Files with what was too large for a model or is not for reading, and with the images it was given."""
    task: str | None = None
    """Set when the call continues, at its server or inside the host: the id by which `Host.tasks` and, if the
    server runs it, `dragoman tasks` fetch the result later."""
    forwarded: Raw | None = None
    """The whole result as it came, undecoded, where that was wanted; `content` is empty then."""
    problems: tuple[str, ...] = ()
    """What is wrong with the result though the call went well: it does not fit its own schema …"""

    @property
    def text(self) -> str:
        """Everything that can be read, as one text."""
        if len(self.content) == 1:
            return self.content[0].as_text()
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
        """Whether there is structured content, be it null."""
        return not isinstance(self.structured_content, UnsetType)

    def raise_for_error(self) -> CallOutcome:
        """Raises the error because of which the call has no result, or a CallError if the tool itself
        reported one."""
        if self.error is not None:
            raise self.error
        if self.is_error:
            raise CallError(self.server, f"{self.tool} reported an error: {visible(self.text, 2048)}")
        return self


def outcome_of(
    server: str,
    tool: str,
    result: ToolResult,
    prepared: Prepared,
    duration_seconds: float,
    redact: Redactor | None = None,
    *,
    raw: bool = False,
) -> CallOutcome:
    """`redact` covers what is not prepared: structured content, `_meta`, and words about them. Unless `raw`,
    structured content is cleaned for models; `_meta`, which models are not given, is not."""
    meta, structured, problems = result.meta, result.structured, prepared.problems
    if not raw and structured is not UNSET:
        structured = _for_model(structured)
    left_out: tuple[str, ...] = ()
    if isinstance(meta, Undecoded):
        meta, left_out = None, (f"its _meta of {meta.size_bytes} bytes is left out",)
    if redact:
        meta, structured = _covered_meta(meta, redact), _covered_part(structured, redact)
        problems = tuple(map(redact.text, problems))
    return CallOutcome(
        server=server,
        tool=tool,
        content=prepared.content,
        is_error=result.is_error,
        meta=meta,
        duration_seconds=duration_seconds,
        structured_content=structured,
        saved=prepared.saved,
        problems=(*problems, *left_out) if left_out else problems,
    )


def outcome_in_background(task: RunningTask, message: str, duration_seconds: float) -> CallOutcome:
    """A call that continues, at its server or in this process. `message`: the status message of the
    server."""
    said = f" Its status: {one_line(message, 500)}" if message else ""
    fetch = f"`dragoman tasks resume {task.id}`"
    if not task.fingerprint:  # only this process knows it
        fetch = f"`tasks.result({task.id!r})` of the host"
    text = (
        f"The call continues {'at its server ' if task.task_id else ''}as {task.id}.{said}\n"
        f"Its result is not known yet: fetch it with {fetch}."
    )
    return CallOutcome(
        server=task.server,
        tool=task.tool,
        content=(TextBlock(text),),
        task=task.id,
        duration_seconds=duration_seconds,
    )


def _covered_part(part: Any, redact: Redactor) -> Any:
    """What is undecoded is covered once it is decoded."""
    if part is UNSET or part is None:
        return part
    return structs.replace(part, redact=redact) if isinstance(part, Undecoded) else redact.value(part)


def _for_model(part: Any) -> Any:
    """What is undecoded is cleaned once it is decoded."""
    if isinstance(part, Undecoded):
        return structs.replace(part, for_model=True)
    try:
        return value_for_model(part)
    except RecursionError:
        return TOO_DEEP


def _covered_meta(meta: Mapping[str, Any] | None, redact: Redactor) -> Mapping[str, Any] | None:
    found = None if meta is None else redact.value(meta)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None  # too deep: hidden whole


def with_context(outcome: CallOutcome, context: Iterable[str]) -> CallOutcome:
    """The outcome, followed by the context that hooks add for the model."""
    added = tuple(TextBlock(text) for text in context)
    return structs.replace(outcome, content=(*outcome.content, *added)) if added else outcome


def with_replacement(outcome: CallOutcome, text: str) -> CallOutcome:
    """The outcome with the text of a hook instead of the result or the error. Nothing of these stays beside
    it."""
    return structs.replace(
        outcome,
        content=(TextBlock(text),),
        error=None if outcome.error is None else _replaced(outcome.error, text),
        structured_content=UNSET,
        meta=None,
        saved=(),
        problems=(),
    )


def _replaced(error: CallError, text: str) -> CallError:
    """An error of the same kind with this message alone."""
    if isinstance(error, RemoteError):
        return RemoteError(error.server or "", error.remote_code, text, status=error.status)
    again = reworded(error, lambda _: text)
    again.server, again.hint = error.server, None  # the hint may name what the message named
    return again


def covered(error: CallError, redact: Redactor | None) -> CallError:
    """The same error without secrets in its message and attributes."""
    if not redact:
        return error
    if not isinstance(error, RemoteError):
        return reworded(error, redact.text)
    # Composed again: the message may end inside a secret.
    message, data = redact.text(error.remote_message), redact.value(error.remote_data)
    return RemoteError(error.server or "", error.remote_code, message, data, status=error.status)


def outcome_of_error(
    server: str, tool: str, error: CallError, duration_seconds: float = 0.0, redact: Redactor | None = None
) -> CallOutcome:
    """A call that ended without a result, in words a model can use."""
    error = covered(error, redact)
    text = str(error)
    if error.hint:
        text = f"{text} {error.hint}" if text.endswith((".", "!", "?", "…")) else f"{text}. {error.hint}"
    return CallOutcome(
        server=server,
        tool=tool,
        content=(TextBlock(text),),
        is_error=True,
        error=error,
        duration_seconds=duration_seconds,
    )
