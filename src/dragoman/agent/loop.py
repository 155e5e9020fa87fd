"""A conversation: the model answers, calls tools, gets their results, and answers again.

Every tool call of the model gets a result, also after a cancellation, because providers refuse a conversation
in which a result is missing. Therefore every conversation can be continued. Front ends receive events; the
host asks the person.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal

from msgspec import Struct, structs
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ModelAPIError, ModelConnectionError
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
    ToolCallPartDelta,
    ToolReturnPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings

from dragoman.agent.context import Compaction, ContextMeter
from dragoman.agent.conversation_hooks import ConversationHooks
from dragoman.agent.conversion import (
    definitions,
    interrupted,
    join_surrogates,
    read_arguments,
    request_of,
    result_part,
    turns_of,
    usage_of,
)
from dragoman.agent.events import (
    AgentEvent,
    ContextCompacted,
    Message,
    PromptRefused,
    QueuedMessagesSent,
    Reply,
    ResponseFinished,
    RetryScheduled,
    StoppedBy,
    TextDelta,
    ThinkingDelta,
    ToolCallFinished,
    ToolCallProgressed,
    ToolCallStarted,
    TranscriptIncomplete,
    Usage,
)
from dragoman.agent.retry import CUT_OFF, WRONG_ENDPOINT_HINT, is_cut_off, provider_at, react
from dragoman.agent.subagents import current_call_id
from dragoman.agent.transcript import Record
from dragoman.calls.outcome import CallOutcome, outcome_of_error
from dragoman.calls.turn import call_in_turn
from dragoman.errors import CallError, ModelUnavailable
from dragoman.hooks.merging import Submitted
from dragoman.host import Host
from dragoman.interaction import (
    ConversationTurn,
    ReadTurns,
    conversation_for_classifier,
    current_conversation,
)
from dragoman.surrogates import joined
from dragoman.toolbox import Toolbox

OnEvent = Callable[[AgentEvent], None]

SETTINGS: Final[ModelSettings] = {"max_retries": 0, "cache": True}
"""The client library must not retry: this module retries, so that retries are shown."""
SUMMARY_SETTINGS: Final[ModelSettings] = {**SETTINGS, "tool_choice": "none"}
"""Tools are sent with the request for a summary as well: this keeps the provider's cache valid, and some
providers refuse a conversation with tool calls otherwise."""
STOP_REFUSED: Final = "A hook of the user does not let you stop yet:"
RESPONSE_CHARACTERS: Final = 4_000_000
"""The most characters of one response: several times what the largest models write."""
RESPONSE_TOO_LONG: Final = f"the response of the model has more than {RESPONSE_CHARACTERS:,} characters"
REPEAT_LIMIT: Final = 3
"""How many identical calls in a row with the same result are accepted before the model is asked to stop."""
REPEATED: Final = (
    "This is the same call with the same result as before. Do not repeat it: try something else, or answer."
)


class LoopLimits(Struct, frozen=True, kw_only=True):
    max_turns: int = 100
    """The most responses of the model to one prompt."""
    context_tokens: int = 200_000


LIMITS: Final = LoopLimits()


def limits_of(host: Host, model: Model, max_turns: int) -> LoopLimits:
    """The limits, with the context size of the model, or with the setting if that is not known."""
    window: object = model.profile.get("context_window")
    known = window if isinstance(window, int) else host.configuration.settings["DRAGOMAN_CONTEXT_TOKENS"]
    return LoopLimits(max_turns=max_turns, context_tokens=known)


class Conversation:
    def __init__(
        self,
        toolbox: Toolbox,
        model: Model,
        instructions: str,
        *,
        limits: LoopLimits = LIMITS,
        record: Record = Record(),  # noqa: B008 (frozen)
        hooks: ConversationHooks = ConversationHooks(),  # noqa: B008 (it has no state)
    ) -> None:
        """`instructions`: the system prompt. It never changes, so that the provider's cache stays valid."""
        self._toolbox = toolbox
        self._model = model
        self._instructions = instructions
        self._limits = limits
        self._transcript = record.transcript
        self._history = list(record.history)
        self._hooks = hooks
        self._meter = ContextMeter(limits.context_tokens)
        self._repeats = _Repeats()
        self._is_incompleteness_reported = False
        self._are_instructions_changed = False
        """Whether the instructions of servers differ from those in the system prompt."""
        self.queued: list[Message] = []
        """Messages that are sent with the next tool results. Until then callers may remove them."""
        self.expand: Callable[[str], Awaitable[str]] = _as_written
        """Adds the mentioned files and resources to a message when it is sent."""
        self.usage = Usage()
        """The usage of the whole conversation."""

    @property
    def history(self) -> Sequence[ModelMessage]:
        return self._history

    @property
    def instructions(self) -> str:
        """The system prompt."""
        return self._instructions

    @property
    def context_limit(self) -> int:
        """The context size of the model in tokens."""
        return self._limits.context_tokens

    @property
    def context_tokens(self) -> int:
        """The estimated tokens of the next request."""
        return self._meter.tokens(self._history)

    def add_usage(self, usage: Usage) -> None:
        """Adds the usage of a subagent."""
        self.usage += usage

    async def run(self, prompt: str | Message, on_event: OnEvent = lambda event: None) -> Reply:
        """Answers a prompt. Raises `ModelUnavailable`. After a cancellation the conversation is complete, and
        the next prompt continues it."""
        message = Message(prompt) if isinstance(prompt, str) else prompt
        submitted = await self._submitted(message)
        if submitted.refusal is not None:
            return Reply(text="", turns=0, usage=Usage(), stopped_by="hook", reason=submitted.refusal)
        self._add_texts(*self._changed_instructions(), *submitted.context, person_texts=[message.written])
        before = self.usage
        text, turns, stopped_by = await self._work(on_event)
        return Reply(text=text, turns=turns, usage=self.usage - before, stopped_by=stopped_by)

    @property
    def _is_answered(self) -> bool:
        return isinstance(self._history[-1], ModelResponse)

    async def _work(self, on_event: OnEvent) -> tuple[str, int, StoppedBy]:
        """Requests responses until the model makes no more calls. Returns the model's last text, the number
        of responses, and the reason for the end."""
        text, stops = "", 0
        for turn in range(1, self._limits.max_turns + 1):
            self._report_incomplete_transcript(on_event)
            response = await self._respond(on_event)
            self._report_incomplete_transcript(on_event)
            text = _text_of(response) or text
            calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
            if calls:
                await self._call_tools(calls, on_event)
            if calls or self.queued:
                await self._add_queued(on_event)
            if self._is_answered:
                reason = await self._hooks.stopping(text, stops)
                if reason is not None:
                    stops += 1
                    self._add_texts(f"{STOP_REFUSED}\n\n{reason}")
                if self.queued:
                    await self._add_queued(on_event)
            if self._is_answered:
                return text, turn, "length" if response.finish_reason == "length" else "end"
        return text, self._limits.max_turns, "max-turns"

    async def compact(
        self,
        on_event: OnEvent = lambda event: None,
        *,
        instructions: str = "",
        trigger: Literal["manual", "auto"] = "manual",
    ) -> None:
        """Replaces the conversation so far by a summary of the model. `instructions`: the person's
        instructions for the summary. Raises `ModelUnavailable`, and keeps the conversation."""
        await self._hooks.before_compaction(trigger, instructions)
        before = self.context_tokens
        compaction = Compaction(self._history, instructions)

        def on_retry(event: AgentEvent) -> None:
            if isinstance(event, RetryScheduled):
                on_event(event)

        try:
            response = await self._request(compaction.request(), on_retry, settings=SUMMARY_SETTINGS)
        except ModelUnavailable as error:
            if not error.is_too_long:
                raise
            response = await self._request(compaction.short_request(), on_retry, settings=SUMMARY_SETTINGS)
        self.usage += usage_of(response)
        summary = joined(_text_of(response))
        if not summary.strip():
            raise ModelUnavailable(
                "the model wrote no summary", hint="Begin a new conversation, or try again."
            )
        context = [*await self._hooks.started("compact")]
        if self._are_instructions_changed:
            context.append(self._toolbox.instructions())
        self._history = compaction.apply(summary, context)
        if self._transcript is not None:
            self._transcript.restart(self._history)
        on_event(ContextCompacted(tokens_before=before, tokens_after=self.context_tokens))

    # Requests to the model.

    async def _respond(self, on_event: OnEvent) -> ModelResponse:
        """Requests and records the next response. If the conversation is too long, it is compacted first."""
        if self._meter.is_full(self._history):
            await self.compact(on_event, trigger="auto")
        try:
            response = await self._request([*self._history], on_event, is_recorded=True)
        except ModelUnavailable as error:
            if not error.is_too_long or len(self._history) == 1:
                raise
            await self.compact(on_event, trigger="auto")
            response = await self._request([*self._history], on_event, is_recorded=True)
        self._add(response)
        usage = usage_of(response)
        self.usage += usage
        self._meter.record(self._history, usage)
        on_event(ResponseFinished(usage=usage))
        return response

    async def _request(
        self,
        messages: Sequence[ModelMessage],
        on_event: OnEvent,
        *,
        settings: ModelSettings = SETTINGS,
        is_recorded: bool = False,
    ) -> ModelResponse:
        """Makes a request, and repeats it after a temporary failure. Raises `ModelUnavailable`."""
        attempt = 0
        while True:
            attempt += 1
            try:
                response = await self._stream(messages, on_event, settings=settings, is_recorded=is_recorded)
                if is_cut_off(response):
                    raise ModelConnectionError(self._model.model_name, CUT_OFF)
                return response
            except ModelAPIError as error:
                reaction = react(error, attempt, self._model.base_url)
                if reaction.action != "retry":
                    unavailable = ModelUnavailable(reaction.reason, hint=reaction.hint)
                    unavailable.is_too_long = reaction.action == "compact"
                    raise unavailable from error
                wait = reaction.wait_seconds
                on_event(RetryScheduled(reason=reaction.reason, attempt=attempt, wait_seconds=wait))
                await asyncio.sleep(wait)
            except ModelUnavailable:
                raise
            except Exception as error:  # border: the model library and the data of the provider
                # Only the type is shown: the text of the error may contain the whole URL.
                provider, kind = provider_at(self._model.base_url), type(error).__name__
                reason = f"{provider} sent a response that is not a valid model response ({kind})"
                raise ModelUnavailable(reason, hint=WRONG_ENDPOINT_HINT) from error

    async def _stream(
        self,
        messages: Sequence[ModelMessage],
        on_event: OnEvent,
        *,
        settings: ModelSettings,
        is_recorded: bool,
    ) -> ModelResponse:
        parameters = ModelRequestParameters(function_tools=definitions(self._toolbox.tools()))
        request = _with_instructions(messages, self._instructions)
        async with model_request_stream(
            self._model, request, model_settings=settings, model_request_parameters=parameters
        ) as stream:
            left = RESPONSE_CHARACTERS
            try:
                async for event in stream:
                    left -= _characters(event)
                    if left < 0:
                        raise ModelUnavailable(RESPONSE_TOO_LONG, hint="Try again, or choose another model.")
                    if (shown := _agent_event_of(event)) is not None:
                        on_event(shown)
            except asyncio.CancelledError:
                if is_recorded:
                    self._add_partial(stream)
                raise
            return stream.get()

    def _add_partial(self, stream: StreamedResponse) -> None:
        """Records the text that the model had produced when it was stopped, without incomplete calls."""
        written = [part for part in stream.get().parts if isinstance(part, TextPart) and part.content.strip()]
        if written:
            self._add(ModelResponse(written))

    # Tool calls.

    async def _call_tools(self, calls: Sequence[ToolCallPart], on_event: OnEvent) -> None:
        """Makes the calls of one response, and always records a result for each of them."""
        results: dict[int, ToolReturnPart] = {}
        parallel = {tool.name for tool in self._toolbox.tools() if tool.is_parallel}

        async def make(place: int) -> CallOutcome:
            call = calls[place]
            outcome = await self._call_tool(call, on_event)
            part = result_part(call, outcome)
            if self._repeats.is_repeated(call, str(part.content)):
                part.content = f"{part.content}\n\n{REPEATED}"
            results[place] = part
            return outcome

        try:
            with conversation_for_classifier(self._turns(current_conversation())):
                await call_in_turn([call.tool_name for call in calls], make, parallel.__contains__)
        finally:
            self._add(
                ModelRequest([results.get(place) or interrupted(call) for place, call in enumerate(calls)])
            )

    def _turns(self, outer: ReadTurns | None) -> ReadTurns:
        """The conversation so far, for a classifier. `outer`: the conversation that started this subagent,
        because the messages of the person are there."""
        if outer is None:
            return lambda: turns_of(self._history)
        return lambda: [
            *outer(),
            *(ConversationTurn("assistant", turn.text) for turn in turns_of(self._history)),
        ]

    async def _call_tool(self, call: ToolCallPart, on_event: OnEvent) -> CallOutcome:
        arguments, problem = read_arguments(call)
        name, call_id = call.tool_name, call.tool_call_id
        on_event(ToolCallStarted(call_id=call_id, tool=name, arguments=arguments))
        current_call_id.set(call_id)
        try:
            outcome = problem or await self._toolbox.call(
                name,
                arguments,
                call_id=call_id,
                on_progress=lambda progress: on_event(
                    ToolCallProgressed(call_id=call_id, tool=name, progress=progress)
                ),
            )
        except CallError as error:  # the server was lost: the model gets the error as the result
            outcome = outcome_of_error(error.server or "", name, error)
        on_event(ToolCallFinished(call_id=call_id, tool=name, outcome=outcome))
        return outcome

    # Messages.

    async def _submitted(self, message: Message) -> Submitted:
        """Runs the hooks for a message. Unless they refuse it, the returned context ends with the message and
        the files and resources it mentions."""
        submitted = await self._hooks.prompt_submitted(message.text)
        if submitted.refusal is not None:
            return submitted
        text = await self.expand(message.text) if message.shown is None else message.text
        return structs.replace(submitted, context=(*submitted.context, text))

    async def _add_queued(self, on_event: OnEvent) -> None:
        """Adds queued messages of the person, and instructions of servers that were connected meanwhile."""
        submitted = [(message, await self._submitted(message)) for message in [*self.queued]]
        texts, sent = self._changed_instructions(), list[str]()
        for message, answer in submitted:
            if message not in self.queued:  # removed meanwhile
                continue
            self.queued.remove(message)
            if answer.refusal is None:
                sent.append(message.written)
                texts += answer.context
            else:
                on_event(PromptRefused(prompt=message.written, reason=answer.refusal))
        if texts:
            self._add_texts(*texts, person_texts=sent)
        if sent:
            on_event(QueuedMessagesSent(tuple(sent)))

    def _changed_instructions(self) -> list[str]:
        """The instructions of servers that the model has not received yet."""
        changes = self._toolbox.instructions_delta()
        if changes:
            self._are_instructions_changed = True
        return [changes] if changes else []

    def _add_texts(self, *texts: str, person_texts: Sequence[str] = ()) -> None:
        self._add(request_of(texts, [joined(text) for text in person_texts]))

    def _add(self, message: ModelMessage) -> None:
        join_surrogates(message)
        self._history.append(message)
        if self._transcript is None:
            return
        if self._transcript.problem is None:
            self._transcript.add(message)
        else:
            self._transcript.restart(self._history)

    def _report_incomplete_transcript(self, on_event: OnEvent) -> None:
        problem = self._transcript.problem if self._transcript is not None else None
        if problem is not None and not self._is_incompleteness_reported:
            self._is_incompleteness_reported = True
            on_event(TranscriptIncomplete(problem))


async def _as_written(text: str) -> str:
    return text


class _Repeats:
    """Detects a model that repeats the same call."""

    def __init__(self) -> None:
        self._last: tuple[str, str, str] | None = None
        self._count = 0

    def is_repeated(self, call: ToolCallPart, result: str) -> bool:
        this = (call.tool_name, str(call.args), result)
        self._count = self._count + 1 if this == self._last else 1
        self._last = this
        return self._count >= REPEAT_LIMIT


def _with_instructions(messages: Sequence[ModelMessage], instructions: str) -> list[ModelMessage]:
    """The messages with the system prompt in the last request. The system prompt is never recorded."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    return [*messages[:-1], ModelRequest(last.parts, instructions=instructions or None)]


def _agent_event_of(event: object) -> AgentEvent | None:
    match event:
        case PartStartEvent(part=TextPart(content=text)) if text:
            return TextDelta(joined(text))
        case PartStartEvent(part=ThinkingPart(content=text)) if text:
            return ThinkingDelta(joined(text))
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return TextDelta(joined(text))
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text)) if text:
            return ThinkingDelta(joined(text))
        case _:
            return None


def _characters(event: object) -> int:
    """The characters that an event adds to the response."""
    match event:
        case PartStartEvent(part=TextPart(content=text) | ThinkingPart(content=text)):
            return len(text)
        case PartStartEvent(part=ToolCallPart(args=arguments)):
            return len(str(arguments))
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text) | ThinkingPartDelta(content_delta=text)):
            return len(text or "")
        case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=arguments)):
            return len(str(arguments))
        case _:
            return 0


def _text_of(response: ModelResponse) -> str:
    return "".join(part.content for part in response.parts if isinstance(part, TextPart))
