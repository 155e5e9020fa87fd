"""Requests of the modern era that a server answers with `input_required`: sent again with the answers.

Handles `tools/call`, `resources/read` and `prompts/get`: the input requests, the parameters of the next
round, the limit on rounds, and one time limit over all of them. `requestState` is returned byte for byte.
`connections/server_requests.py` makes the answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from msgspec import Raw, Struct, structs

from dragoman.connections.server_requests import NO_CONTEXT, Refusal, RequestContext, ServerRequests
from dragoman.connections.session import Session
from dragoman.errors import (
    CallTimeout,
    ConnectionLost,
    HttpError,
    InputUnavailable,
    MalformedReply,
    RemoteError,
)
from dragoman.interaction import RelatedCall
from dragoman.questions import current_question, sampling_depth
from dragoman.surrogates import exactly
from dragoman.wire.codec import Unreadable, split_as
from dragoman.wire.messages import ABSENT
from dragoman.wire.peer import ProgressCallback

T = TypeVar("T")

ROUND_LIMIT: Final = 10
QUESTION_LIMIT: Final = 20
INPUT_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""The most bytes of all input requests of one round, request state included."""
LARGE_BYTES: Final = 32 * 1024
"""Results that are not larger are read on the event loop."""
PAUSE_SECONDS: Final = 0.2
"""The pause before a round in which the server asks for no input: it only wants the request again."""


class InputRequest(Struct):
    method: str
    params: Raw = ABSENT


class InputRequiredResult(Struct, rename="camel"):
    input_requests: dict[str, InputRequest] = {}
    request_state: Raw = ABSENT


Read = Callable[[Raw], "tuple[str, T] | Awaitable[tuple[str, T]]"]
"""What kind of result it is, and the result; `Unreadable` if it is neither. What is large may take a
while."""


def in_thread_if_large(read: Callable[[Raw], tuple[str, T]]) -> Read[T]:
    """Reads a large result in a worker thread; `read` takes no single step that is long."""

    def reading(raw: Raw) -> tuple[str, T] | Awaitable[tuple[str, T]]:
        return asyncio.to_thread(read, raw) if memoryview(raw).nbytes > LARGE_BYTES else read(raw)

    return reading


class Exchange(Struct, Generic[T], frozen=True):
    """A request that its server may answer with `input_required`, and how it is sent again."""

    session: Session
    method: str
    params: Mapping[str, Any]
    read: Read[T]
    answerer: ServerRequests
    check: Callable[[], None] | None = None
    """Called immediately before each round is sent; raises if it must not be sent any more."""
    on_progress: ProgressCallback | None = None
    headers: Mapping[str, str] | None = None
    reset_timeout_on_progress: bool = False
    """Whether the time limit starts again with each progress notification."""
    call: RelatedCall | None = None
    """The call that questions of the server belong to."""

    def send(self, params: Mapping[str, Any], timeout_seconds: float) -> Coroutine[Any, Any, Raw]:
        return self.session.request(
            self.method,
            params,
            timeout_seconds=timeout_seconds,
            on_progress=self.on_progress,
            headers=self.headers,
            reset_timeout_on_progress=self.reset_timeout_on_progress,
            before_send=self.check,
            call=self.call,
        )


async def request_with_input(exchange: Exchange[T], timeout_seconds: float) -> T:
    """The complete result."""
    deadline = monotonic() + timeout_seconds
    raw = await exchange.send(exchange.params, timeout_seconds)
    return await complete(exchange, raw, read_reply(exchange, raw), timeout_seconds, deadline)


def read_reply(exchange: Exchange[T], raw: Raw) -> tuple[str, T] | Awaitable[tuple[str, T]]:
    try:
        return exchange.read(raw)
    except Unreadable as problem:
        raise MalformedReply(exchange.session.server, problem.detail) from None


async def complete(
    exchange: Exchange[T],
    raw: Raw,
    found: tuple[str, T] | Awaitable[tuple[str, T]],
    limit_seconds: float,
    deadline: float,
) -> T:
    """The complete result of a request whose first reply is `raw`, which was read as `found`."""
    session = exchange.session
    for round_number in range(ROUND_LIMIT + 1):
        if exchange.reset_timeout_on_progress:  # progress extended the deadline; rounds are limited
            deadline = monotonic() + limit_seconds
        try:
            async with asyncio.timeout(deadline - monotonic()):
                kind, result = found if isinstance(found, tuple) else await found
                if kind == "complete":
                    return result
                if kind != "input_required" or session.driver.era != "modern":
                    # Nothing that would let a server answer otherwise has been declared to it.
                    raise MalformedReply(session.server, f"a result of the undeclared kind {kind!r}")
                if round_number == ROUND_LIMIT:
                    break
                answers = await next_round(
                    session.server, raw, exchange.answerer, input_context(exchange.call)
                )
        except Unreadable as problem:
            raise MalformedReply(session.server, problem.detail) from None
        except TimeoutError:
            raise CallTimeout(session.server, exchange.method, limit_seconds) from None
        raw = await _sent_again(exchange, answers, max(0.001, deadline - monotonic()))
        found = read_reply(exchange, raw)
    raise MalformedReply(session.server, f"it requires more than {ROUND_LIMIT} rounds of input")


async def _sent_again(exchange: Exchange[T], answers: Mapping[str, Any], timeout_seconds: float) -> Raw:
    """The reply to the next round. The rounds before were answered, so the request as a whole has reached the
    server."""
    try:
        return await exchange.send({**exchange.params, **answers}, timeout_seconds)
    except ConnectionLost as lost:
        server = exchange.session.server
        raise ConnectionLost(server, lost.cause, may_have_run=True, hint=lost.hint) from None
    except (RemoteError, HttpError) as error:
        error.is_final = True  # it is not about the rounds before
        raise


def input_context(call: RelatedCall | None) -> RequestContext:
    """What is known of input requests of a call."""
    return RequestContext(
        calls=() if call is None else (call,),
        within=current_question(),
        sampling_depth=sampling_depth.get(),
        is_input_round=True,
    )


async def next_round(
    server: str, raw: Raw, answerer: ServerRequests, context: RequestContext = NO_CONTEXT
) -> dict[str, Any]:
    """What the next round carries besides the call itself."""
    if memoryview(raw).nbytes > INPUT_LIMIT_BYTES:
        raise MalformedReply(server, f"its input requests are larger than {INPUT_LIMIT_BYTES} bytes")
    try:
        asked = split_as(InputRequiredResult, raw)
        if asked.request_state is not ABSENT:
            split_as(str, asked.request_state)
    except Unreadable as problem:
        raise MalformedReply(server, f"its input requests cannot be read: {problem.detail}") from None
    if len(asked.input_requests) > QUESTION_LIMIT:
        raise MalformedReply(server, f"it sends more than {QUESTION_LIMIT} input requests at once")
    if not asked.input_requests and asked.request_state is ABSENT:
        raise MalformedReply(server, "it requires input, but has neither inputRequests nor requestState")
    carried: dict[str, Any] = {}
    if asked.input_requests:
        carried["inputResponses"] = await _answers(server, asked.input_requests, answerer, context)
    else:
        await asyncio.sleep(PAUSE_SECONDS)
    if asked.request_state is not ABSENT:
        carried["requestState"] = exactly(raw, "requestState", asked.request_state)
    return carried


async def _answers(
    server: str, questions: Mapping[str, InputRequest], answerer: ServerRequests, context: RequestContext
) -> dict[str, Mapping[str, Any]]:
    """The answers by key. All are asked for at once; the queue of questions has its own order."""
    asking = [
        asyncio.ensure_future(
            answer_input(server, question, answerer, _with_key(context, key, len(questions)))
        )
        for key, question in questions.items()
    ]
    try:
        return dict(zip(questions, await asyncio.gather(*asking)))
    finally:
        for each in asking:
            each.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


def _with_key(context: RequestContext, key: str, count: int) -> RequestContext:
    calls = tuple(structs.replace(call, input_key=key, input_count=count) for call in context.calls)
    return structs.replace(context, calls=calls)


async def answer_input(
    server: str, question: InputRequest, answerer: ServerRequests, context: RequestContext
) -> Mapping[str, Any]:
    """The answer to one input request; `InputUnavailable` if there is none."""
    await asyncio.sleep(0)  # many forms in sequence would block the event loop
    try:
        return await answerer.answer(question.method, question.params, context)
    except Refusal as refusal:
        # Not every kind of input can be declined: the server is not waiting, so the call ends here.
        raise InputUnavailable(server, question.method, refusal.message) from None
