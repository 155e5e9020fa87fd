"""A conversation: the model answers, calls tools, is given their results, and answers again.

Every tool call of the model gets a result, also after a cancellation, because providers refuse a conversation
in which one is missing. So the conversation can be continued after whatever happened. Front ends are given
events; questions to the person are asked by the host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings

from dragoman.agent.context import Compaction, Meter
from dragoman.agent.conversion import (
    definitions,
    interrupted,
    read_arguments,
    result_part,
    turns_of,
    usage_of,
)
from dragoman.agent.events import (
    AgentEvent,
    ContextCompacted,
    QueuedSent,
    Reply,
    ResponseFinished,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    ToolCallFinished,
    ToolCallProgressed,
    ToolCallStarted,
    Usage,
)
from dragoman.agent.retry import react
from dragoman.agent.transcript import Transcript
from dragoman.calls.outcome import CallOutcome
from dragoman.calls.turn import call_in_turn
from dragoman.errors import ModelUnavailable
from dragoman.permissions.classifier import conversation_for_classifier
from dragoman.toolbox import Toolbox

OnEvent = Callable[[AgentEvent], None]

SETTINGS: Final[ModelSettings] = {"max_retries": 0, "cache": True}
"""Retries are made here, where they are seen."""
REPEAT_LIMIT: Final = 3
"""How often in sequence the same call with the same result is accepted before the model is asked to stop."""
REPEATED: Final = (
    "This is the same call with the same result as before. Do not repeat it: try something else, or answer."
)


class Limits(Struct, frozen=True, kw_only=True):
    max_turns: int = 100
    """Responses of the model to one prompt."""
    context_tokens: int = 200_000


LIMITS: Final = Limits()


class Conversation:
    def __init__(
        self,
        toolbox: Toolbox,
        model: Model,
        instructions: str,
        *,
        limits: Limits = LIMITS,
        transcript: Transcript | None = None,
        history: Sequence[ModelMessage] = (),
    ) -> None:
        """`instructions`: the system prompt. It is sent with each request and does not change, so that the
        provider's cache holds. `history`: what was said before, as a transcript has it."""
        self._toolbox = toolbox
        self._model = model
        self._instructions = instructions
        self._limits = limits
        self._transcript = transcript
        self._history = list(history)
        self._meter = Meter(limits.context_tokens)
        self._repeats = _Repeats()
        self.queued: list[str] = []
        """Messages that the model is given along with the next tool results. They can be withdrawn here."""
        self.usage = Usage()
        """Of the whole conversation."""

    @property
    def history(self) -> Sequence[ModelMessage]:
        return self._history

    @property
    def instructions(self) -> str:
        """The system prompt."""
        return self._instructions

    @property
    def context_limit(self) -> int:
        """How many tokens the model takes."""
        return self._limits.context_tokens

    @property
    def context_tokens(self) -> int:
        """How many tokens the next request has, about."""
        return self._meter.tokens(self._history)

    def queue(self, prompt: str) -> None:
        """Gives the model a message along with the next tool results, while it works."""
        self.queued.append(prompt)

    async def run(self, prompt: str, on_event: OnEvent = lambda event: None) -> Reply:
        """The model's answer to a prompt. Raises `ModelUnavailable`. When it is cancelled, the conversation
        stays complete, and the next prompt continues it."""
        changes = self._toolbox.instructions_delta() if self._history else ""
        self._add(ModelRequest([UserPromptPart(text) for text in (changes, prompt) if text]))
        before = self.usage
        text = ""
        for turn in range(1, self._limits.max_turns + 1):
            response = await self._respond(on_event)
            text = _text_of(response) or text
            calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
            if calls:
                await self._call_tools(calls, on_event)
            elif not self.queued:
                return Reply(text=text, turns=turn, usage=_difference(self.usage, before))
            self._add_queued(on_event)
        return Reply(
            text=text,
            turns=self._limits.max_turns,
            usage=_difference(self.usage, before),
            stopped_by="max-turns",
        )

    async def compact(self, on_event: OnEvent = lambda event: None) -> None:
        """Replaces the conversation so far by a summary that the model writes."""
        before = self.context_tokens
        compaction = Compaction(self._history)
        response = await self._stream(compaction.request(), (), lambda event: None)
        self.usage += usage_of(response)
        self._history = compaction.apply(_text_of(response))
        if self._transcript is not None:
            self._transcript.restart(self._history)
        on_event(ContextCompacted(tokens_before=before, tokens_after=self.context_tokens))

    # The model.

    async def _respond(self, on_event: OnEvent) -> ModelResponse:
        """The next response, recorded. After a passing failure the request is made again."""
        if self._meter.is_full(self._history):
            await self.compact(on_event)
        attempt, has_compacted = 0, False
        while True:
            attempt += 1
            try:
                response = await self._stream(
                    [*self._history], definitions(self._toolbox.tools()), on_event, is_recorded=True
                )
            except ModelAPIError as error:
                reaction = react(error, attempt)
                if reaction.action == "compact" and not has_compacted and len(self._history) > 1:
                    has_compacted = True
                    await self.compact(on_event)
                elif reaction.action == "retry":
                    wait = reaction.wait_seconds
                    on_event(RetryScheduled(reason=reaction.reason, attempt=attempt, wait_seconds=wait))
                    await asyncio.sleep(wait)
                else:
                    raise ModelUnavailable(reaction.reason, hint=reaction.hint) from error
                continue
            self._add(response)
            usage = usage_of(response)
            self.usage += usage
            self._meter.measured(self._history, usage)
            on_event(ResponseFinished(usage=usage))
            return response

    async def _stream(
        self,
        messages: Sequence[ModelMessage],
        tools: Sequence[Any],
        on_event: OnEvent,
        *,
        is_recorded: bool = False,
    ) -> ModelResponse:
        parameters = ModelRequestParameters(function_tools=list(tools))
        request = _with_instructions(messages, self._instructions)
        async with model_request_stream(
            self._model, request, model_settings=SETTINGS, model_request_parameters=parameters
        ) as stream:
            try:
                async for event in stream:
                    if (shown := _shown(event)) is not None:
                        on_event(shown)
            except asyncio.CancelledError:
                if is_recorded:
                    self._add_partial(stream)
                raise
            return stream.get()

    def _add_partial(self, stream: StreamedResponse) -> None:
        """Keeps what the model had written when it was stopped; calls that it had begun are left out."""
        written = [part for part in stream.get().parts if isinstance(part, TextPart) and part.content.strip()]
        if written:
            self._add(ModelResponse(written))

    # Tools.

    async def _call_tools(self, calls: Sequence[ToolCallPart], on_event: OnEvent) -> None:
        """Makes the calls of one response, and records a result for each of them, whatever happens."""
        results: dict[int, ToolReturnPart] = {}
        parallel = {tool.name for tool in self._toolbox.tools() if tool.hints.is_parallel}

        async def make(place: int) -> CallOutcome:
            call = calls[place]
            outcome = await self._call_tool(call, on_event)
            part = result_part(call, outcome)
            if self._repeats.is_repeated(call, str(part.content)):
                part.content = f"{part.content}\n\n{REPEATED}"
            results[place] = part
            return outcome

        try:
            with conversation_for_classifier(lambda: turns_of(self._history)):
                await call_in_turn([call.tool_name for call in calls], make, parallel.__contains__)
        finally:
            self._add(
                ModelRequest([results.get(place) or interrupted(call) for place, call in enumerate(calls)])
            )

    async def _call_tool(self, call: ToolCallPart, on_event: OnEvent) -> CallOutcome:
        arguments, problem = read_arguments(call)
        name, call_id = call.tool_name, call.tool_call_id
        on_event(ToolCallStarted(call_id=call_id, tool=name, arguments=arguments))
        outcome = problem or await self._toolbox.call(
            name,
            arguments,
            call_id=call_id,
            on_progress=lambda progress: on_event(
                ToolCallProgressed(call_id=call_id, tool=name, progress=progress)
            ),
        )
        on_event(ToolCallFinished(call_id=call_id, tool=name, outcome=outcome))
        return outcome

    # What was said.

    def _add_queued(self, on_event: OnEvent) -> None:
        if self.queued:
            self._add(ModelRequest([UserPromptPart(prompt) for prompt in self.queued]))
            on_event(QueuedSent(tuple(self.queued)))
            self.queued.clear()

    def _add(self, message: ModelMessage) -> None:
        self._history.append(message)
        if self._transcript is not None:
            self._transcript.add(message)


class _Repeats:
    """Notices a model that makes the same call over and over."""

    def __init__(self) -> None:
        self._last: tuple[str, str, str] | None = None
        self._count = 0

    def is_repeated(self, call: ToolCallPart, result: str) -> bool:
        this = (call.tool_name, str(call.args), result)
        self._count = self._count + 1 if this == self._last else 1
        self._last = this
        return self._count >= REPEAT_LIMIT


def _with_instructions(messages: Sequence[ModelMessage], instructions: str) -> list[ModelMessage]:
    """The system prompt goes with the last request; it is never part of what is recorded."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    return [*messages[:-1], ModelRequest(last.parts, instructions=instructions or None)]


def _shown(event: object) -> AgentEvent | None:
    match event:
        case PartStartEvent(part=TextPart(content=text)) if text:
            return TextDelta(text)
        case PartStartEvent(part=ThinkingPart(content=text)) if text:
            return ThinkingDelta(text)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return TextDelta(text)
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text)) if text:
            return ThinkingDelta(text)
        case _:
            return None


def _text_of(response: ModelResponse) -> str:
    return "".join(part.content for part in response.parts if isinstance(part, TextPart))


def _difference(now: Usage, before: Usage) -> Usage:
    cost = None if now.cost_usd is None else now.cost_usd - (before.cost_usd or 0.0)
    return Usage(
        input_tokens=now.input_tokens - before.input_tokens,
        output_tokens=now.output_tokens - before.output_tokens,
        cache_read_tokens=now.cache_read_tokens - before.cache_read_tokens,
        cost_usd=cost,
    )
