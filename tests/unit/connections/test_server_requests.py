"""What a server that asks is answered."""

import json
from typing import Any

import pytest
from msgspec import Raw

from dragoman.connections.server_requests import Refusal, RequestContext, RequestHandler, ServerRequests
from dragoman.interaction import FormAnswer, FormElicitation
from tests.unit.fakes import reply_of, requests_answered_by

FORM = {
    "message": "who are you?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string", "default": "nobody"}, "age": {"type": "integer"}},
    },
}


class Filler:
    def __init__(self, answer: FormAnswer) -> None:
        self.answer = answer
        self.asked: list[FormElicitation] = []

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        self.asked.append(question)
        return self.answer


async def reply(requests: ServerRequests, request_id: Any, method: str, params: Any = None) -> dict[str, Any]:
    raw = Raw(json.dumps(params).encode()) if params is not None else Raw(b"{}")
    return json.loads(await reply_of(requests, request_id, method, raw))


@pytest.mark.parametrize("request_id", ["x", 7, 0, 1.5, None, True])
async def test_ping_is_answered_with_its_id(request_id: str | int | float | bool | None):
    answered = await reply(ServerRequests(), request_id, "ping")

    assert answered == {"jsonrpc": "2.0", "id": request_id, "result": {}}
    assert type(answered["id"]) is type(request_id)


@pytest.mark.parametrize(
    "method", ["roots/list", "sampling/createMessage", "elicitation/create", "tools/call", "", "pong"]
)
async def test_a_method_that_was_not_declared_is_refused_as_unknown(method: str):
    answered = await reply(ServerRequests(), 7, method)

    assert answered["id"] == 7
    assert answered["error"]["code"] == -32601
    assert method in answered["error"]["message"]


async def test_the_refusal_of_a_very_long_method_name_is_short():
    assert len(await reply_of(ServerRequests(), 7, "x" * 1_000_000, Raw(b"{}"))) < 1000


def test_form_elicitation_is_declared_only_with_an_interaction():
    assert ServerRequests().capabilities == {}
    assert requests_answered_by(Filler(FormAnswer("decline"))).capabilities == {"elicitation": {"form": {}}}


async def test_a_form_is_filled_by_the_person_and_completed_with_its_defaults():
    filler = Filler(FormAnswer("accept", {"age": 7}))
    answered = await reply(requests_answered_by(filler), 1, "elicitation/create", FORM)

    assert answered["result"] == {"action": "accept", "content": {"name": "nobody", "age": 7}}
    assert (filler.asked[0].server, filler.asked[0].message) == ("s", "who are you?")


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_declined_form_has_no_values(action: Any):
    answered = await reply(requests_answered_by(Filler(FormAnswer(action))), 1, "elicitation/create", FORM)

    assert answered["result"] == {"action": action}


@pytest.mark.parametrize(
    "params", [{}, [], {"message": 3}, {**FORM, "mode": "url"}, {**FORM, "requestedSchema": []}]
)
async def test_a_malformed_elicitation_is_not_shown(params: Any):
    filler = Filler(FormAnswer("accept"))
    answered = await reply(requests_answered_by(filler), 1, "elicitation/create", params)

    assert answered["error"]["code"] == -32602
    assert filler.asked == []


async def test_each_method_is_answered_by_its_own_handler_and_declares_its_own_capabilities():
    async def roots(params: Raw, context: RequestContext) -> dict[str, Any]:
        return {"roots": []}

    async def sample(params: Raw, context: RequestContext) -> dict[str, Any]:
        raise Refusal(-1, "no model")

    table = ServerRequests(
        (
            RequestHandler("roots/list", {"roots": {"listChanged": True}}, roots),
            RequestHandler("sampling/createMessage", {"sampling": {}}, sample),
        )
    )

    assert table.capabilities == {"roots": {"listChanged": True}, "sampling": {}}
    assert (await reply(table, 1, "roots/list"))["result"] == {"roots": []}
    assert (await reply(table, 2, "sampling/createMessage"))["error"] == {"code": -1, "message": "no model"}
    assert (await reply(table, 3, "elicitation/create"))["error"]["code"] == -32601
    local = [table.local_reply(1, each, has_call=True) for each in ("ping", "roots/list", "tools/call")]
    assert [reply is not None for reply in local] == [True, False, True]
