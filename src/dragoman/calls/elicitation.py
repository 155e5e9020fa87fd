"""Elicitation: what servers ask of a person, in form mode and in URL mode.

Contains the handler for `elicitation/create`, and `Elicitor`, which puts each question to hooks first, then
to the person, then the answer to hooks. Questions are bounded and cleaned before anyone sees them; a form or
a URL that cannot be shown safely is refused, and so is a form that asks for secrets. An answer that does not
fit its form is not sent. Without a person or a hook that answers, a question is declined.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, cast

from msgspec import Raw, Struct

from dragoman.calls.url_elicitation import url_question
from dragoman.cleaning import cut, is_safe, one_line, visible
from dragoman.connections.server_requests import Refusal, RequestContext, RequestHandler
from dragoman.content.redact import RedactorOf
from dragoman.errors import HostClosed
from dragoman.forms import UnusableForm, completed, fields_of, problems_of
from dragoman.hooks.active import ActiveHooks
from dragoman.interaction import (
    ElicitsForms,
    ElicitsUrls,
    FormAnswer,
    FormElicitation,
    NoInteraction,
    UrlElicitation,
    WaitsForUrls,
)
from dragoman.names import ServerName
from dragoman.protocol import INTERNAL_ERROR, INVALID_PARAMS
from dragoman.questions import WAITING_LIMIT, OpenQuestion, Questions, TooManyQuestions
from dragoman.wire.codec import Unreadable, decode_as
from dragoman.wire.messages import ABSENT

Action = Literal["accept", "decline", "cancel"]

ELICITATION_LIMIT_BYTES: Final = 128 * 1024
"""No person would read a larger form, and cleaning it would block the event loop."""
LABEL_LIMIT: Final = 4096
_LABELS: Final = frozenset({"title", "description", "enumNames"})
"""Fields of a form's schema that are only shown."""
_NOT_REDACTED: Final = frozenset({"server", "url", "host", "calls"})
"""Fields of questions in which nothing is redacted."""


class ElicitParams(Struct, rename="camel"):
    message: str
    requested_schema: dict[str, Any] = {}
    mode: str = "form"
    url: str = ""
    elicitation_id: str = ""


class Elicitor:
    """Asks hooks and the person of one host."""

    def __init__(
        self,
        questions: Questions,
        hooks: ActiveHooks,
        redactor_of: RedactorOf,
        allows_secrets: Callable[[], bool] = lambda: False,
    ) -> None:
        """`allows_secrets`: whether forms may have fields for passwords and other secrets."""
        self._questions = questions
        self._hooks = hooks
        self._redactor_of = redactor_of
        self.allows_secrets = allows_secrets

    def modes(self, server: str) -> tuple[str, ...]:
        """The modes in which a person or a hook may answer this server."""
        person, is_hooked = self._questions.interaction, self._hooks.wants("Elicitation", server)
        found = {"form": isinstance(person, ElicitsForms), "url": isinstance(person, ElicitsUrls)}
        return tuple(mode for mode, is_shown in found.items() if is_shown or is_hooked)

    async def elicit_form(self, question: FormElicitation, within: OpenQuestion | None = None) -> FormAnswer:
        question = self._redacted(question)
        answer = await self._answer_of_hooks(question)
        person = self._questions.interaction
        if answer is None and isinstance(person, ElicitsForms):
            answer = await self._shown(question, within, lambda: person.elicit_form(question))
        return await self._checked_by_hooks(question, answer or FormAnswer("decline"))

    async def elicit_url(
        self,
        question: UrlElicitation,
        within: OpenQuestion | None = None,
        *,
        until_done: bool = False,
        is_complete: asyncio.Event | None = None,
    ) -> Action:
        """`until_done`: returns `accept` when the person has confirmed that they are done with the page, or
        when `is_complete` is set; otherwise as soon as they agreed to open it."""
        question = self._redacted(question)
        answer = await self._answer_of_hooks(question)
        person = self._questions.interaction
        if answer is None and isinstance(person, ElicitsUrls):
            action = await self._shown(question, within, lambda: person.elicit_url(question))
            if action == "accept" and until_done:
                action = "accept" if await self._is_done(question, within, is_complete) else "cancel"
            answer = FormAnswer(action)
        return (await self._checked_by_hooks(question, answer or FormAnswer("decline"))).action

    async def _is_done(
        self, question: UrlElicitation, within: OpenQuestion | None, is_complete: asyncio.Event | None
    ) -> bool:
        person = self._questions.interaction
        is_complete = is_complete or asyncio.Event()
        if is_complete.is_set() or not isinstance(person, WaitsForUrls):
            return True
        asking = asyncio.ensure_future(
            self._shown(question, within, lambda: person.wait_for_url(question), is_new=False)
        )
        completing = asyncio.ensure_future(is_complete.wait())
        try:
            await asyncio.wait((asking, completing), return_when=asyncio.FIRST_COMPLETED)
            return is_complete.is_set() or await asking
        finally:
            asking.cancel()
            completing.cancel()
            await asyncio.gather(asking, completing, return_exceptions=True)

    async def _shown(
        self, question: Any, within: OpenQuestion | None, ask: Callable[[], Any], *, is_new: bool = True
    ) -> Any:
        """The person's answer, when it is this question's turn."""
        server: str = question.server
        async with self._questions.turn(server, within=within, limit=WAITING_LIMIT):
            if is_new:
                self._hooks.notice("elicitation_dialog", "A server asks", f"{server} asks something")
            return await self._questions.show(ask())

    def _redacted(self, question: Any) -> Any:
        redact = self._redactor_of(ServerName(question.server))
        return redact.struct(question, _NOT_REDACTED) if redact else question

    async def _answer_of_hooks(self, question: FormElicitation | UrlElicitation) -> FormAnswer | None:
        if not self._hooks.wants("Elicitation", question.server):
            return None
        schema: Mapping[str, Any] = question.schema if isinstance(question, FormElicitation) else {}
        return await self._hooks.elicited(question.server, question.message, schema, **_facts(question))

    async def _checked_by_hooks(
        self, question: FormElicitation | UrlElicitation, answer: FormAnswer
    ) -> FormAnswer:
        if not self._hooks.wants("ElicitationResult", question.server):
            return answer
        return await self._hooks.elicitation_answered(question.server, answer, **_facts(question))


def _facts(question: FormElicitation | UrlElicitation) -> dict[str, str]:
    """What hooks are given of both kinds of questions."""
    call_id = question.calls[0].call_id if len(question.calls) == 1 else ""
    if isinstance(question, FormElicitation):
        return {"mode": "form", "url": "", "elicitation_id": "", "call_id": call_id}
    return {
        "mode": "url",
        "url": question.url,
        "elicitation_id": question.elicitation_id,
        "call_id": call_id,
    }


def elicitation_handlers(server: str, elicitor: Elicitor) -> tuple[RequestHandler, ...]:
    """The handler for those modes that can be answered; none if there is no such mode."""
    modes = elicitor.modes(server)
    if not modes:
        return ()

    async def answer(params: Raw, context: RequestContext) -> Mapping[str, Any]:
        asked = _read(params)
        if asked.mode not in modes:
            raise Refusal(INVALID_PARAMS, f"this client does not offer the mode {cut(asked.mode, 50)!r}")
        try:
            if asked.mode == "form":
                return await _elicit_form(server, elicitor, asked, context)
            return await _elicit_url(server, elicitor, asked, context)
        except (Refusal, HostClosed):
            raise
        except NoInteraction:
            return {"action": "decline"}
        except TooManyQuestions:
            raise Refusal(INTERNAL_ERROR, "too many questions at once") from None
        except Exception:  # border: a front end's code; the server is not to wait for ever
            return {"action": "cancel"}

    return (RequestHandler("elicitation/create", {"elicitation": {mode: {} for mode in modes}}, answer),)


def _read(params: Raw) -> ElicitParams:
    if memoryview(params).nbytes > ELICITATION_LIMIT_BYTES:
        raise Refusal(INVALID_PARAMS, f"the elicitation is larger than {ELICITATION_LIMIT_BYTES} bytes")
    try:
        return decode_as(ElicitParams, params if params is not ABSENT else b"{}")
    except Unreadable as error:
        raise Refusal(INVALID_PARAMS, f"the elicitation cannot be read: {error.detail}") from None


async def _elicit_url(
    server: str, elicitor: Elicitor, asked: ElicitParams, context: RequestContext
) -> Mapping[str, Any]:
    question = url_question(
        server, asked.url, asked.message, elicitation_id=asked.elicitation_id, calls=context.calls
    )
    if question is None:
        raise Refusal(INVALID_PARAMS, "the address cannot be shown to a person")
    # A server that sent a request waits for the page by itself; otherwise it is asked again at once.
    action = await elicitor.elicit_url(question, context.within, until_done=context.is_input_round)
    return {"action": action}


async def _elicit_form(
    server: str, elicitor: Elicitor, asked: ElicitParams, context: RequestContext
) -> Mapping[str, Any]:
    question = FormElicitation(
        server=server,
        message=visible(asked.message, LABEL_LIMIT),
        schema=_shown_schema(asked.requested_schema),
        calls=context.calls,
    )
    try:
        fields = fields_of(asked.requested_schema)
    except UnusableForm as problem:
        raise Refusal(INVALID_PARAMS, one_line(str(problem), 300)) from None
    secret = next((field for field in fields if field.is_secret), None)
    if secret is not None and not elicitor.allows_secrets():
        why = f"the field {one_line(secret.name, 100)!r} asks for a secret, which no form may; use mode url"
        raise Refusal(INVALID_PARAMS, why)
    answer = await elicitor.elicit_form(question, context.within)
    if answer.action != "accept":
        return {"action": answer.action}
    content = completed(fields, answer.content)
    if problems := problems_of(fields, content):
        described = "; ".join(f"{name}: {problem}" for name, problem in problems.items())
        raise Refusal(INTERNAL_ERROR, f"the answer to the form cannot be sent: {one_line(described, 500)}")
    return {"action": "accept", "content": content}


def _shown_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a form as a person may be shown it. Labels are cleaned; names and values are sent back as
    they are, so a form that hides something in one of them is refused."""
    try:
        return _shown("", schema)
    except RecursionError:
        raise Refusal(INVALID_PARAMS, "the form is nested too deeply") from None


def _shown(field: str, part: Any) -> Any:
    if isinstance(part, str):
        if field not in _LABELS and not is_safe(part):
            raise Refusal(INVALID_PARAMS, "the form has characters that cannot be shown to a person")
        return visible(part, LABEL_LIMIT) if field in _LABELS else part
    if isinstance(part, list):
        return [_shown(field, item) for item in cast("list[Any]", part)]
    if isinstance(part, Mapping):
        members = cast("Mapping[str, Any]", part)
        return {_shown("", name): _shown(name, inner) for name, inner in members.items()}
    return part
