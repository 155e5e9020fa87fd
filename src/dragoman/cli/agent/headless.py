"""`dragoman -p`: one answer for scripts, as text, as JSON, or as a stream of JSON lines.

No question is asked: a call that would need an answer is refused. The JSON has the field names that scripts
for Claude Code use.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final, TextIO

import click
import msgspec

from dragoman.agent.events import (
    AgentEvent,
    Reply,
    RetryScheduled,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    TranscriptIncomplete,
)
from dragoman.agent.session import AgentOptions, AgentSession, open_session
from dragoman.cleaning import visible
from dragoman.cli import exit_codes
from dragoman.cli.agent.start import StartOptions, run, show_failed_servers
from dragoman.errors import DragomanError, PermissionRefused
from dragoman.host import Host
from dragoman.own_threads import in_own_thread
from dragoman.surrogates import replace_lone_surrogates
from dragoman.wire.codec import DECODE_ERRORS

_SUBTYPES: Final = {"end": "success", "max-turns": "error_max_turns"}
_EXIT_CODES: Final[Mapping[str, int]] = {
    "end": exit_codes.OK,
    "max-turns": exit_codes.FAILED,
    "length": exit_codes.FAILED,
    "hook": exit_codes.REFUSED,
}
INPUT_LIMIT: Final = 10 * 1024 * 1024


def answer(start_options: StartOptions, options: AgentOptions) -> int:
    async def work(host: Host) -> int:
        async with open_session(host, options) as session:
            output = OutputWriter(start_options.output_format, session)
            output.begin(host, options.model.spec)
            code = exit_codes.OK
            async for prompt in _prompts(start_options):
                code = await _answer_prompt(session, prompt, output)
            show_failed_servers(host, "`dragoman mcp list` shows the servers.", err=True)
            return code

    return run(start_options, options, work)


async def _answer_prompt(session: AgentSession, prompt: str, output: OutputWriter) -> int:
    started = time.monotonic()
    try:
        reply = await session.conversation.run(prompt, output.event)
    except DragomanError as error:
        output.failed(error, time.monotonic() - started)
        return exit_codes.for_error(error)
    output.end(reply, time.monotonic() - started)
    return _EXIT_CODES[reply.stopped_by]


async def _prompts(start_options: StartOptions) -> AsyncIterator[str]:
    if start_options.input_format == "stream-json":
        lines = _standard_input()
        while line := await in_own_thread(lambda: lines.readline(INPUT_LIMIT)):
            if line.strip():
                yield _prompt_in(line)
        return
    text = start_options.prompt or ""
    if text == "-":
        piped = _standard_input()
        text = await in_own_thread(lambda: piped.read(INPUT_LIMIT + 1))
        if len(text) > INPUT_LIMIT:
            raise click.UsageError(f"the prompt on stdin has more than {INPUT_LIMIT} characters")
    if not text.strip():
        raise click.UsageError("the prompt is empty; give it after -p, or on stdin")
    yield text


def _standard_input() -> TextIO:
    """Opens standard input a second time, for a thread that may still wait for input when the program ends.
    Python aborts if that thread then holds the lock of `sys.stdin`. Invalid UTF-8 is replaced."""
    return open(sys.stdin.fileno(), encoding=sys.stdin.encoding, errors="replace", closefd=False)


def _prompt_in(line: str) -> str:
    """The prompt in a line `{"type": "user", "message": {"role": "user", "content": …}}`."""
    data = line.encode()
    try:
        found: Any = msgspec.json.decode(replace_lone_surrogates(data) or data)
        content: Any = found["message"]["content"]
        if isinstance(content, str):
            return content
        return "\n".join(part["text"] for part in content if part["type"] == "text")
    except (*DECODE_ERRORS, LookupError, TypeError):
        raise click.UsageError(
            'a line of the input is not {"type": "user", "message": {"role": "user", "content": "…"}}'
        ) from None


class OutputWriter:
    """Writes events in one of the output formats. All text other than the answer goes to stderr."""

    def __init__(self, form: str, session: AgentSession) -> None:
        self._form = form
        self._session = session
        self._text: list[str] = []
        self._denials: list[dict[str, Any]] = []
        self._arguments: dict[str, Any] = {}

    def begin(self, host: Host, model: str) -> None:
        if self._form == "stream-json":
            self._line(
                type="system",
                subtype="init",
                session_id=self._id,
                model=model,
                tools=[tool.name for tool in self._session.toolbox.tools()],
                mcp_servers=[{"name": name, "status": view.status} for name, view in host.servers.items()],
            )

    def event(self, event: AgentEvent) -> None:
        match event:
            case TextDelta(text):
                self._text.append(text)
            case ToolCallStarted():
                self._arguments[event.call_id] = event.arguments
                call = {"type": "tool_use", "id": event.call_id, "name": event.tool, "input": event.arguments}
                self._message("assistant", [*self._take_text(), call])
            case ToolCallFinished():
                self._finished(event)
            case RetryScheduled():
                self._text.clear()
                note = f"{event.reason}; next attempt in {event.wait_seconds:.0f} s"
                click.echo(note, err=True)
            case TranscriptIncomplete():
                click.echo(event.text, err=True)
            case _:
                pass

    def _finished(self, event: ToolCallFinished) -> None:
        outcome = event.outcome
        if isinstance(outcome.error, PermissionRefused):
            self._denials.append(
                {
                    "tool_name": event.tool,
                    "tool_use_id": event.call_id,
                    "tool_input": self._arguments.get(event.call_id),
                }
            )
        result = {"type": "tool_result", "tool_use_id": event.call_id, "content": outcome.text}
        self._message("user", [{**result, "is_error": outcome.is_error}])

    def end(self, reply: Reply, seconds: float) -> None:
        if self._form == "text":
            if reply.stopped_by != "hook":
                click.echo(visible(reply.text) if sys.stdout.isatty() else reply.text)
            if reply.stopped_by != "end":
                click.echo(reply.stopped_text, err=True)
            return
        self._message("assistant", self._take_text())
        usage = reply.usage
        self._line(
            type="result",
            subtype=_SUBTYPES.get(reply.stopped_by, "error_during_execution"),
            is_error=reply.stopped_by != "end",
            result=reply.text if reply.stopped_by != "hook" else reply.reason,
            num_turns=reply.turns,
            duration_ms=int(seconds * 1000),
            session_id=self._id,
            total_cost_usd=usage.cost_usd,
            usage={
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cache_read_input_tokens": usage.cache_read_tokens,
            },
            permission_denials=self._denials,
        )

    def failed(self, error: DragomanError, seconds: float) -> None:
        if self._form == "text":
            raise error
        self._line(
            type="result",
            subtype="error_during_execution",
            is_error=True,
            result=str(error),
            error={"code": error.code, "hint": error.hint},
            duration_ms=int(seconds * 1000),
            session_id=self._id,
            permission_denials=self._denials,
        )

    @property
    def _id(self) -> str:
        return self._session.transcript.id

    def _take_text(self) -> list[dict[str, Any]]:
        text, self._text = "".join(self._text), []
        return [{"type": "text", "text": text}] if text else []

    def _message(self, role: str, content: Iterable[dict[str, Any]]) -> None:
        parts = list(content)
        if self._form == "stream-json" and parts:
            self._line(type=role, message={"role": role, "content": parts}, session_id=self._id)

    def _line(self, **fields: Any) -> None:
        sys.stdout.write(msgspec.json.encode(fields).decode() + "\n")
        sys.stdout.flush()
