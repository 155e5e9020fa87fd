"""Questions of servers, and of the host itself, passed to the client that makes the call.

A client of the legacy era is sent a request. One of the modern era gets the question as the result of its own
request (`input_required`) and sends that again with the answer. Meanwhile the call waits here; `requestState`
identifies it, and names the replica of the gateway that holds it.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Coroutine, Mapping
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Struct

from dragoman.cleaning import one_line
from dragoman.gateway.access import KnownCaller
from dragoman.interaction import (
    FormAnswer,
    FormElicitation,
    NoInteraction,
    PermissionAnswer,
    PermissionQuestion,
    RelatedCall,
    SamplingAnswer,
    SamplingRequest,
    SamplingReview,
    UrlElicitation,
)
from dragoman.protocol import INVALID_PARAMS
from dragoman.wire.peer import Progress
from dragoman.wire.server.request import ClientRequest, missing_capability
from dragoman.wire.server.service import InputRequired, Json, RequestError, Result

KEPT_SECONDS: Final = 600.0
"""How long a call waits for a client of the modern era to send its request again with the answer."""
KEPT_LIMIT: Final = 32
"""The most calls of one caller that wait for an answer."""
PAGE_SECONDS: Final = 60.0
"""How long a person may take for a page before the call is made again, if the server does not report that it
is complete."""
TOGETHER_SECONDS: Final = 0.05
"""How long the questions that a server asks together take to come, at most."""
ARGUMENTS_SHOWN: Final = 20
"""Arguments of a call in the question whether it may be made."""
VALUES_SHOWN: Final = 1000
"""The most characters of all values of the arguments that are shown."""
NAME_SHOWN: Final = 60
_ONCE, _SESSION, _NO = "allow this call", "allow while the gateway runs", "refuse"


class _Continued(Struct, rename="camel"):
    """The members of a request that is sent again with answers."""

    input_responses: dict[str, Json] = {}
    request_state: str | None = None


class RunningRequest:
    """One request of a client, while it is being answered."""

    def __init__(self, request: ClientRequest, known: KnownCaller, view: str) -> None:
        self.request = request
        """The newest request: the client may have sent it again."""
        self.caller = known.caller
        self.owner = (known.caller, known.rights, view)
        """Who may continue it: the same caller, with the same rights, at the same path."""
        self.about: tuple[str, bytes] | None = None
        self.task: asyncio.Task[Result] | None = None
        self.fixed: Mapping[str, Any] = {}
        """Arguments that the view fixes: the client is not shown them."""
        self.missing: Json = {}
        """The capability that the client would have to declare for a question."""
        self._given: dict[str, Json] = {}
        """Answers that came with the request itself, to questions that were not asked yet."""
        if request.client.era == "modern":
            self.about = _about(request)
            self._given = dict(request.decode(_Continued).input_responses)
        self._asked: dict[str, tuple[Json, asyncio.Future[Json]]] = {}
        self._expected = 1
        self._waiter: asyncio.Future[None] | None = None
        self._keys = itertools.count(1)

    def progressed(self, progress: Progress) -> None:
        self.request.progress(progress.progress, progress.total, progress.message)

    def offers(self, method: str, params: Mapping[str, Any]) -> bool:
        """Whether the client has declared that it answers this."""
        return missing_capability(self.request.client.capabilities, method, params) is None

    async def ask(self, method: str, params: Json, key: str = "", count: int = 1) -> Json:
        """The client's answer; `NoInteraction` if it has not declared that it answers this. `key`: the
        server's own for the question; `count`: how many questions it asks together."""
        missing = missing_capability(self.request.client.capabilities, method, params)
        if missing is not None:
            self.missing = missing
            raise NoInteraction(f"the client that makes the call does not offer {method}")
        if self.request.client.era == "legacy":
            return await self.request.ask(method, params)
        if key and key in self._given:  # questions of the host have no key before they are asked
            return self._given.pop(key)
        if not key or key in self._asked:
            key = f"{key}{next(self._keys)}"
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._asked[key] = ({"method": method, "params": params}, future)
        self._expected = count
        self._wake()
        try:
            return await future
        finally:
            self._asked.pop(key, None)

    def answer(self, answers: Mapping[str, Json]) -> None:
        for key, answer in answers.items():
            question = self._asked.pop(key, None)
            if question is not None and not question[1].done():
                question[1].set_result(answer)

    async def settled(self, task: asyncio.Task[Result]) -> Mapping[str, Json]:
        """Waits until the task has ended or asks questions; returns the open questions by key."""
        task.add_done_callback(self._wake)
        try:
            while not task.done() and not self._asked:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
            if not task.done() and len(self._asked) < self._expected:
                await asyncio.sleep(TOGETHER_SECONDS)  # those that are asked together come one by one
        finally:
            task.remove_done_callback(self._wake)
        return {} if task.done() else {key: question for key, (question, _) in self._asked.items()}

    def _wake(self, _: object = None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class ClientQuestions:
    """The `Interaction` and the `Sampler` of a gateway's host: the clients."""

    supports_tools = True
    asks_in_parallel = True

    def __init__(self) -> None:
        self._running: dict[str, RunningRequest] = {}
        """By call id."""
        self._kept: dict[str, RunningRequest] = {}
        """By `requestState`, those of the modern era whose client has been asked something."""
        self.replica = ""
        """The name of this replica of the gateway, if there can be several."""

    # Requests of clients.

    async def run(self, call_id: str, running: RunningRequest, work: Coroutine[Any, Any, Result]) -> Result:
        """Runs the work and returns its result; questions of this call are sent to the client meanwhile."""
        self._running[call_id] = running
        if running.request.client.era == "legacy":
            try:
                return await work
            finally:
                del self._running[call_id]
        running.task = task = asyncio.create_task(work)
        task.add_done_callback(lambda _: self._running.pop(call_id, None))
        return await self._settled(running, task)

    def is_continued(self, request: ClientRequest) -> bool:
        return request.client.era == "modern" and request.decode(_Continued).request_state is not None

    async def continue_(self, request: ClientRequest, known: KnownCaller, view: str) -> Result:
        """The result of a request that is sent again with answers."""
        given = request.decode(_Continued)
        running = self._kept.get(given.request_state or "")
        owner = (known.caller, known.rights, view)
        if running is None or running.owner != owner or running.about != _about(request):
            raise RequestError(INVALID_PARAMS, "requestState: no such call is waiting for an answer")
        del self._kept[given.request_state or ""]
        running.request = request
        running.answer(given.input_responses)
        assert running.task is not None
        return await self._settled(running, running.task)

    async def _settled(self, running: RunningRequest, task: asyncio.Task[Result]) -> Result:
        try:
            questions = await running.settled(task)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not questions:
            return await task
        raise InputRequired(questions, self._keep(running, task))

    def _keep(self, running: RunningRequest, task: asyncio.Task[Result]) -> str:
        own = [state for state, kept in self._kept.items() if kept.caller == running.caller]
        if len(own) >= KEPT_LIMIT:
            self._drop(own[0])
        state = f"{self.replica}.{secrets.token_urlsafe(24)}"
        self._kept[state] = running
        # Also when the call ends meanwhile, without an answer: the client then gets its result.
        asyncio.get_running_loop().call_later(KEPT_SECONDS, self._drop, state)
        task.add_done_callback(_ignore_error)
        return state

    def _drop(self, state: str) -> None:
        running = self._kept.pop(state, None)
        if running is not None and running.task is not None:
            running.task.cancel()

    def close(self) -> None:
        for state in list(self._kept):
            self._drop(state)

    # The interface of `Interaction` and `Sampler`.

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        running = self._running.get(question.call_id)
        if running is None or not running.offers("elicitation/create", {}):
            step = f"; an allow rule {question.rule!r} would help" if question.rule else ""
            raise NoInteraction(f"the client cannot be asked{step}")
        own = {name: value for name, value in question.arguments.items() if name not in running.fixed}
        why = f" ({question.reason})" if question.reason else ""
        message = f"May {question.tool} be called{why}? Its arguments: {_shown(own)}"
        choices = [_ONCE, *([_SESSION] if question.is_rememberable else []), _NO]
        schema = {
            "type": "object",
            "properties": {"answer": {"type": "string", "title": "Permission", "enum": choices}},
            "required": ["answer"],
        }
        answer = await running.ask("elicitation/create", {"message": message, "requestedSchema": schema})
        content = answer.get("content")
        chosen = cast("dict[str, Any]", content).get("answer") if isinstance(content, dict) else None
        if answer.get("action") != "accept" or chosen not in choices:
            return PermissionAnswer(False, f"the client answered {_action(answer)}")
        return PermissionAnswer(chosen != _NO, for_session=chosen == _SESSION)

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        params: Json = {"message": _named(question), "requestedSchema": dict(question.schema)}
        answer = await self._ask(question.calls, "elicitation/create", params)
        content = answer.get("content")
        values = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
        # What the client leaves out is left out: its person may have removed the default.
        removed: dict[str, Any] = {field.name: None for field in question.fields}
        return FormAnswer(_action(answer), {**removed, **values})

    async def elicit_url(self, question: UrlElicitation) -> Literal["accept", "decline", "cancel"]:
        params: Json = {"mode": "url", "message": _named(question), "url": question.url}
        params["elicitationId"] = question.elicitation_id or secrets.token_urlsafe(12)
        return _action(await self._ask(question.calls, "elicitation/create", params))

    async def wait_for_url(self, question: UrlElicitation) -> bool:
        """Ends when the server reports that the person has finished with the page, or after a time limit:
        then the call is repeated."""
        if question.elicitation_id:
            await asyncio.sleep(PAGE_SECONDS)
        return True

    async def review_sampling(self, review: SamplingReview) -> SamplingReview | None:
        """Accepts the request: the client reviews it itself, as the specification requires."""
        self._client_of(review.request.calls)
        return review

    async def sample(self, request: SamplingRequest) -> SamplingAnswer:
        answer = await self._ask(request.calls, "sampling/createMessage", _sampling_params(request))
        try:
            return msgspec.convert(answer, _Sampled).answer()
        except msgspec.ValidationError as error:
            raise NoInteraction(f"the client's answer cannot be read: {error}") from None

    async def list_roots(self, calls: tuple[RelatedCall, ...]) -> list[Json] | None:
        """The roots of the client that makes the call; None if it is not known, or has none."""
        running = self._find(calls)
        if running is None or not running.offers("roots/list", {}):
            return None
        found: Any = (await self._ask(calls, "roots/list", {})).get("roots")
        return cast("list[Json]", found) if isinstance(found, list) else []

    async def _ask(self, calls: tuple[RelatedCall, ...], method: str, params: Json) -> Json:
        return await self._client_of(calls).ask(method, params, calls[0].input_key, calls[0].input_count)

    def _client_of(self, calls: tuple[RelatedCall, ...]) -> RunningRequest:
        """The request that the question belongs to; `NoInteraction` if it is not known."""
        running = self._find(calls)
        if running is None:
            raise NoInteraction("it is not known which client's call the question belongs to")
        return running

    def _find(self, calls: tuple[RelatedCall, ...]) -> RunningRequest | None:
        """The request that a question belongs to; None if it may belong to one of several calls, which may be
        another client's."""
        return self._running.get(calls[0].call_id) if len(calls) == 1 else None


def _ignore_error(task: asyncio.Task[Result]) -> None:
    """Retrieves the error of a call whose client does not continue it; the event loop would report it
    otherwise."""
    if not task.cancelled():
        task.exception()


class _Sampled(Struct, rename="camel"):
    content: dict[str, Any] | list[dict[str, Any]]
    model: str = ""
    stop_reason: str | None = None

    def answer(self) -> SamplingAnswer:
        content = self.content if isinstance(self.content, list) else [self.content]
        return SamplingAnswer(
            content=tuple(content), model=self.model, stop_reason=self.stop_reason or "endTurn"
        )


def _sampling_params(request: SamplingRequest) -> Json:
    def content(blocks: tuple[Mapping[str, Any], ...]) -> Any:
        return blocks[0] if len(blocks) == 1 else list(blocks)

    params: Json = {
        "messages": [
            {"role": message.role, "content": content(message.content)} for message in request.messages
        ],
        "maxTokens": request.max_tokens,
    }
    priorities = {
        "costPriority": request.cost_priority,
        "speedPriority": request.speed_priority,
        "intelligencePriority": request.intelligence_priority,
    }
    preferences: Json = {key: value for key, value in priorities.items() if value is not None}
    if request.model_hints:
        preferences["hints"] = [{"name": name} for name in request.model_hints]
    optional = {
        "systemPrompt": request.system_prompt or None,
        "modelPreferences": preferences or None,
        "temperature": request.temperature,
        "stopSequences": list(request.stop_sequences) or None,
        "tools": list(request.tools) or None,
        "toolChoice": {"mode": request.tool_choice} if request.tools else None,
    }
    return {**params, **{key: value for key, value in optional.items() if value is not None}}


def _action(answer: Json) -> Literal["accept", "decline", "cancel"]:
    action = answer.get("action")
    return action if action in ("accept", "decline") else "cancel"


def replica_in(request_state: str) -> str:
    """The replica that a `requestState` names."""
    return request_state.partition(".")[0]


def _about(request: ClientRequest) -> tuple[str, bytes]:
    """The content of a request, without the parts that differ when it is sent again."""
    params = {
        key: value
        for key, value in request.params.items()
        if key not in ("_meta", "inputResponses", "requestState")
    }
    return request.method, msgspec.json.encode(params, order="sorted")


def _named(question: FormElicitation | UrlElicitation) -> str:
    """The message with the server that asks: for the client, all servers and the gateway itself are one."""
    return f"{one_line(question.server, 80)} asks: {question.message}"


def _shown(arguments: Mapping[str, Any]) -> str:
    """The arguments as JSON, each name and value cut separately, so that a long one hides no other."""
    shown = list(arguments.items())[:ARGUMENTS_SHOWN]
    room = VALUES_SHOWN // max(1, len(shown))
    parts = [f"{_cut(name, NAME_SHOWN)}:{_cut(value, room)}" for name, value in shown]
    more = len(arguments) - len(shown)
    return f"{{{','.join(parts)}{f', … [{more} more arguments]' if more else ''}}}"


def _cut(value: Any, limit: int) -> str:
    return one_line(msgspec.json.encode(value).decode(), limit)
