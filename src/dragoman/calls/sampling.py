"""Sampling: servers ask the program's model for an answer (`sampling/createMessage`).

Off unless the entry of the server allows it. Tokens of each request, requests per minute and nesting are
limited. With `ask`, a person sees request and answer, and may change or refuse both. No context of other
servers is ever added: `includeContext` has no effect. The server runs the tools that it names, not the host.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, cast

from msgspec import Raw, Struct, structs

from dragoman.cleaning import for_model, one_line, value_for_model
from dragoman.config.model import ServerConfig
from dragoman.connections.server_requests import Refusal, RequestContext, RequestHandler
from dragoman.content.redact import Redactor
from dragoman.errors import HostClosed
from dragoman.interaction import (
    NoInteraction,
    ReviewsSampling,
    Sampler,
    SamplingAnswer,
    SamplingMessage,
    SamplingRequest,
    SamplingReview,
)
from dragoman.protocol import INTERNAL_ERROR, INVALID_PARAMS
from dragoman.questions import WAITING_LIMIT, Questions, TooManyQuestions, sampling_depth
from dragoman.settings import Settings
from dragoman.wire.codec import Unreadable, decode_as

REJECTED: Final = -1
"""The error code of the specification for a request that the user rejected."""
SAMPLING_LIMIT_BYTES: Final = 1024 * 1024
"""The largest request; decoding a larger one would block the event loop."""
MESSAGE_LIMIT: Final = 500
TEXT_LIMIT: Final = 200_000
NESTING_LIMIT: Final = 2
"""How deeply sampling requests may be nested: in calls that a model makes to answer a sampling request."""
MINUTE_SECONDS: Final = 60.0
_BLOCKS: Final = frozenset({"text", "image", "audio", "tool_use", "tool_result"})
_IDS: Final[Mapping[str, tuple[str, ...]]] = {"tool_use": ("id",), "tool_result": ("toolUseId",)}


class _Hint(Struct):
    name: str = ""


class _Preferences(Struct, rename="camel"):
    hints: list[_Hint] = []
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None


class _Choice(Struct):
    mode: Literal["auto", "required", "none"] = "auto"


class _Message(Struct):
    role: Literal["user", "assistant"]
    content: dict[str, Any] | list[dict[str, Any]]


class _Params(Struct, rename="camel"):
    messages: list[_Message]
    max_tokens: int
    system_prompt: str = ""
    model_preferences: _Preferences | None = None
    temperature: float | None = None
    stop_sequences: list[str] = []
    tools: list[dict[str, Any]] = []
    tool_choice: _Choice | None = None


def request_of(
    server: str, params: Raw, context: RequestContext, *, token_limit: int, has_tools: bool
) -> SamplingRequest:
    """The request as the model gets it; `Refusal` if it is none, or asks for what was not declared."""
    if memoryview(params).nbytes > SAMPLING_LIMIT_BYTES:
        raise _invalid(f"the request is larger than {SAMPLING_LIMIT_BYTES} bytes")
    try:
        asked = decode_as(_Params, params)
    except Unreadable as error:
        raise _invalid(f"the request cannot be read: {error.detail}") from None
    if asked.max_tokens < 1:
        raise _invalid("maxTokens is not positive")
    if not 0 < len(asked.messages) <= MESSAGE_LIMIT:
        raise _invalid(f"there are no messages, or more than {MESSAGE_LIMIT}")
    if (asked.tools or asked.tool_choice) and not has_tools:
        raise _invalid("this client does not offer tools within sampling")
    messages = tuple(_message(each) for each in asked.messages)
    _check_tool_results(messages)
    wanted = asked.model_preferences or _Preferences()
    return SamplingRequest(
        server=server,
        messages=messages,
        max_tokens=min(asked.max_tokens, token_limit),
        system_prompt=for_model(asked.system_prompt, TEXT_LIMIT),
        model_hints=tuple(one_line(hint.name, 200) for hint in wanted.hints[:20] if hint.name),
        cost_priority=wanted.cost_priority,
        speed_priority=wanted.speed_priority,
        intelligence_priority=wanted.intelligence_priority,
        temperature=asked.temperature,
        stop_sequences=tuple(for_model(each) for each in asked.stop_sequences[:20]),
        tools=tuple(map(_cleaned, asked.tools)),
        tool_choice=asked.tool_choice.mode if asked.tool_choice is not None else "auto",
        calls=context.calls,
    )


def _message(message: _Message) -> SamplingMessage:
    content = message.content if isinstance(message.content, list) else [message.content]
    blocks = tuple(_block(block) for block in content)
    if not blocks:
        raise _invalid("a message is empty")
    return SamplingMessage(message.role, blocks)


def _block(block: dict[str, Any]) -> Mapping[str, Any]:
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in _BLOCKS:
        raise _invalid(f"a message has content of the unknown type {one_line(str(kind), 50)!r}")
    for name in _IDS.get(kind, ()):
        if not isinstance(block.get(name), str):
            raise _invalid(f"content of the type {kind} has no {name}")
    if kind != "text":
        return _cleaned(block)
    return {**block, "text": for_model(str(block.get("text", "")), TEXT_LIMIT)}


def _cleaned(part: dict[str, Any]) -> dict[str, Any]:
    """The value without invisible characters, at every depth."""
    try:
        return value_for_model(part)
    except RecursionError:
        raise _invalid("the request is nested too deeply") from None


def _without_secrets(request: SamplingRequest, redact: Redactor) -> SamplingRequest:
    """Without secrets of the server's entry, also those that are spread over several texts."""
    blocks = [block for message in request.messages for block in message.content]
    said = [str(block["text"]) for block in blocks if block["type"] == "text"]
    system_prompt, *texts = redact.texts([request.system_prompt, *said])
    rest = iter(texts)
    messages = tuple(
        SamplingMessage(message.role, tuple(_covered(block, rest, redact) for block in message.content))
        for message in request.messages
    )
    covered = redact.struct(request, _NOT_REDACTED)
    return structs.replace(covered, system_prompt=system_prompt, messages=messages)


_NOT_REDACTED: Final = frozenset({"server", "calls", "messages", "system_prompt"})


def _covered(block: Mapping[str, Any], texts: Iterator[str], redact: Redactor) -> Mapping[str, Any]:
    """`texts`: those of the blocks that are texts, covered, from this one on."""
    if block["type"] in ("image", "audio"):
        return block
    return redact.value({**block, "text": next(texts)} if block["type"] == "text" else dict(block))


def _check_tool_results(messages: tuple[SamplingMessage, ...]) -> None:
    """Each use of a tool is answered in the next message, which has nothing else."""
    expected: set[Any] = set()
    for message in messages:
        results = {block.get("toolUseId") for block in message.content if block["type"] == "tool_result"}
        kinds = {block["type"] for block in message.content}
        if results and (kinds != {"tool_result"} or message.role != "user"):
            raise _invalid("a message with tool results has other content, too")
        if results != expected:
            raise _invalid("tool uses and tool results do not match")
        expected = {block.get("id") for block in message.content if block["type"] == "tool_use"}
    if expected:
        raise _invalid("tool uses and tool results do not match")


def result_of(request: SamplingRequest, answer: Any) -> dict[str, Any]:
    """The answer as it is sent; `Refusal` if it is none."""
    problem = _problem_of(request, answer)
    if problem is not None:
        raise Refusal(INTERNAL_ERROR, f"the model's answer cannot be sent: {problem}")
    content = [dict(block) for block in answer.content]
    return {
        "role": "assistant",
        # Revisions before 2025-11-25 know a single block only.
        "content": content[0] if len(content) == 1 else content,
        "model": answer.model,
        "stopReason": answer.stop_reason,
    }


def _problem_of(request: SamplingRequest, answer: Any) -> str | None:
    if not isinstance(answer, SamplingAnswer):
        return "it is not a SamplingAnswer"
    if not answer.content:
        return "it is empty"
    for block in answer.content:
        if block.get("type") == "tool_use" and not request.tools:
            return "it uses a tool, and the request has none"
        if block.get("type") not in ("text", "image", "audio", "tool_use"):
            return "it has content of another type"
    return None


def _invalid(why: str) -> Refusal:
    return Refusal(INVALID_PARAMS, why)


class Sampling:
    """Answers sampling requests of one host's servers."""

    def __init__(
        self,
        sampler: Sampler | None,
        questions: Questions,
        settings: Callable[[], Settings],
        monotonic: Callable[[], float],
        redactor_of: Callable[[str], Redactor | None],
    ) -> None:
        self._sampler = sampler
        self._questions = questions
        self._settings = settings
        self._monotonic = monotonic
        self._redactor_of = redactor_of
        self._asked: dict[str, deque[float]] = {}
        """By server, when its requests of the last minute came."""

    def handlers(self, server: str, config: ServerConfig) -> tuple[RequestHandler, ...]:
        """The handler for a server with this entry; none if it may not ask, or if there is no model, or no
        person who can review where the entry wants that."""
        sampler, mode = self._sampler, config.sampling
        can_review = isinstance(self._questions.interaction, ReviewsSampling)
        if sampler is None or mode == "off" or (mode == "ask" and not can_review):
            return ()
        has_tools = bool(getattr(sampler, "supports_tools", False))
        capabilities: dict[str, Any] = {"sampling": {"tools": {}} if has_tools else {}}

        async def answer(params: Raw, context: RequestContext) -> Mapping[str, Any]:
            limit = self._settings()["DRAGOMAN_SAMPLING_MAX_TOKENS"]
            request = request_of(server, params, context, token_limit=limit, has_tools=has_tools)
            self._check_limits(server, context)
            if redact := self._redactor_of(server):
                request = _without_secrets(request, redact)
            return await self._sample(sampler, request, context, is_reviewed=mode == "ask")

        return (RequestHandler("sampling/createMessage", capabilities, answer),)

    def _check_limits(self, server: str, context: RequestContext) -> None:
        if context.sampling_depth >= NESTING_LIMIT:
            raise Refusal(REJECTED, "sampling within sampling is nested too deeply")
        limit = self._settings()["DRAGOMAN_SAMPLING_PER_MINUTE"]
        now, times = self._monotonic(), self._asked.setdefault(server, deque())
        while times and times[0] <= now - MINUTE_SECONDS:
            times.popleft()
        if len(times) >= limit:
            raise Refusal(REJECTED, f"more than {limit} sampling requests in a minute")
        times.append(now)

    async def _sample(
        self, sampler: Sampler, request: SamplingRequest, context: RequestContext, *, is_reviewed: bool
    ) -> Mapping[str, Any]:
        review = SamplingReview(request)
        if is_reviewed:
            review = await self._reviewed(review, context)
        token = sampling_depth.set(context.sampling_depth + 1)
        try:
            answer = await self._questions.wait_for(sampler.sample(review.request))
        except (asyncio.CancelledError, HostClosed):
            raise
        except Exception:  # border: the program's model; its error may hold what the server must not see
            raise Refusal(INTERNAL_ERROR, "the model could not be asked") from None
        finally:
            sampling_depth.reset(token)
        result = result_of(review.request, answer)
        if is_reviewed:
            review = await self._reviewed(SamplingReview(review.request, answer), context)
            result = result_of(review.request, review.answer)
        return result

    async def _reviewed(self, review: SamplingReview, context: RequestContext) -> SamplingReview:
        """What the person lets through; `Refusal` if they do not."""
        person = cast("ReviewsSampling", self._questions.interaction)
        try:
            async with self._questions.turn(
                review.request.server, within=context.within, limit=WAITING_LIMIT
            ):
                found = await self._questions.show(person.review_sampling(review))
        except (asyncio.CancelledError, HostClosed):
            raise
        except TooManyQuestions:
            raise Refusal(INTERNAL_ERROR, "too many questions at once") from None
        except NoInteraction:
            raise Refusal(REJECTED, "no person can be asked to review it") from None
        except Exception:  # border: a front end's code
            raise Refusal(REJECTED, "it could not be reviewed") from None
        if found is None:
            raise Refusal(REJECTED, "the user rejected the sampling request")
        return found
