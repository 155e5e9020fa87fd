"""T190: requests of servers with values of wrong types, very long numbers, and answers that cannot be
encoded."""

import json
from typing import Any

import msgspec
import pytest

from dragoman import FormAnswer, FormElicitation, PermissionAnswer
from dragoman.errors import CallError, InputUnavailable
from dragoman.interaction import SamplingAnswer, SamplingRequest
from tests.servers import stdio_server
from tests.torture.bystander_host import at_once
from tests.torture.conftest import LEGACY, MODERN

both_eras = pytest.mark.parametrize("era", [LEGACY, MODERN])


class Model:
    supports_tools = True

    def __init__(self, text: Any = "Hello") -> None:
        self.asked: list[SamplingRequest] = []
        self._text = text

    async def sample(self, request: SamplingRequest) -> SamplingAnswer:
        self.asked.append(request)
        return SamplingAnswer(content=({"type": "text", "text": self._text},), model="m")


class Person:
    def __init__(self, content: dict[str, Any] | None = None) -> None:
        self.shown: list[FormElicitation] = []
        self._content = content or {}

    async def allow(self, question: Any) -> PermissionAnswer:
        return PermissionAnswer(True)

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        self.shown.append(question)
        return FormAnswer("accept", self._content)


def asking(era: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"method": method, "params": params, **({"in_round": True} if era == MODERN else {})}


def sampling_message(*content: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": list(content)}


TOOL_USE = {"type": "tool_use", "id": "1", "name": "rm", "input": {}}
INVALID_SAMPLING: dict[str, list[dict[str, Any]]] = {
    "a list as a type": [sampling_message({"type": []})],
    "an object as a type": [sampling_message({"type": {"a": 1}})],
    "a result for a list": [
        sampling_message(TOOL_USE, role="assistant"),
        sampling_message({"type": "tool_result", "toolUseId": ["1"]}),
    ],
    "a use with a list as its id": [sampling_message({**TOOL_USE, "id": ["1"]}, role="assistant")],
}


@both_eras
@pytest.mark.parametrize("messages", INVALID_SAMPLING.values(), ids=INVALID_SAMPLING.keys())
async def test_t190_a_sampling_request_with_values_of_wrong_types_is_refused_at_once(
    bystander_host, era, messages
):
    model = Model()
    entry = stdio_server("asks_during_calls.py", protocol=era, sampling="allow")
    async with bystander_host(entry, sampler=model) as a:
        async with at_once():
            params = {"messages": messages, "maxTokens": 5}
            outcome = await a.outcome("ask", **asking(era, "sampling/createMessage", params))
        if era == MODERN:
            assert isinstance(outcome.error, InputUnavailable)
        else:
            assert json.loads(outcome.text)["error"]["code"] == -32602
        await a.serves_still()
    assert model.asked == []


@both_eras
@pytest.mark.parametrize("text", [object(), "half of an emoji: \ud83d"], ids=["an object", "a surrogate"])
async def test_t190_a_model_answer_that_cannot_be_encoded_does_not_leave_the_server_waiting(
    bystander_host, era, text
):
    entry = stdio_server("asks_during_calls.py", protocol=era, sampling="allow")
    async with bystander_host(entry, sampler=Model(text)) as a:
        async with at_once():
            params = {"messages": [sampling_message({"type": "text", "text": "Hi"})], "maxTokens": 5}
            outcome = await a.outcome("ask", **asking(era, "sampling/createMessage", params))
        if era == MODERN:
            assert isinstance(outcome.error, CallError)
        else:
            assert json.loads(outcome.text)["error"]["code"] == -32603
        await a.serves_still()


FIELDS: dict[str, dict[str, Any]] = {
    "a list as a format": {"type": "string", "format": []},
    "an object as a format": {"type": "string", "format": {}},
    "a least length of 400 digits": {"type": "string", "minLength": 10**400, "default": "x"},
    "a least number of 400 digits": {"type": "number", "minimum": 10**400, "default": 1},
    "a default that is a list of lists": {"type": "string", "default": [[]]},
}


@both_eras
@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS.keys())
async def test_t190_a_wrong_part_of_a_field_does_not_prevent_the_form(bystander_host, era, field):
    person = Person({"x": 1 if field["type"] == "number" else "x"})
    schema = {"type": "object", "properties": {"x": field}}
    async with bystander_host(stdio_server("asks_during_calls.py", protocol=era), interaction=person) as a:
        async with at_once():
            params = {"message": "m", "requestedSchema": schema}
            answer = json.loads(await a.call("ask", **asking(era, "elicitation/create", params)))
        assert answer["result"]["action"] == "accept"
        await a.serves_still()


NO_FORMS: dict[str, Any] = {
    "two times null": {"type": ["null", "null"]},
    "a number as a type": {"type": 5},
    "no type at all": {"type": []},
}


@both_eras
@pytest.mark.parametrize("field", NO_FORMS.values(), ids=NO_FORMS.keys())
async def test_t190_a_field_without_a_type_is_refused_with_a_reason(bystander_host, era, field):
    person = Person()
    schema = {"type": "object", "properties": {"x": field}}
    async with bystander_host(stdio_server("asks_during_calls.py", protocol=era), interaction=person) as a:
        async with at_once():
            params = {"message": "m", "requestedSchema": schema}
            outcome = await a.outcome("ask", **asking(era, "elicitation/create", params))
        if era == MODERN:
            assert isinstance(outcome.error, InputUnavailable)
        else:
            assert json.loads(outcome.text)["error"]["code"] == -32602
    assert person.shown == []


@both_eras
async def test_t190_a_persons_answer_with_a_lone_surrogate_does_not_leave_the_server_waiting(
    bystander_host, era
):
    person = Person({"x": "half: \ud83d"})
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    async with bystander_host(stdio_server("asks_during_calls.py", protocol=era), interaction=person) as a:
        async with at_once():
            params = {"message": "m", "requestedSchema": schema}
            outcome = await a.outcome("ask", **asking(era, "elicitation/create", params))
        if era == MODERN:
            assert isinstance(outcome.error, CallError)
        else:
            assert json.loads(outcome.text)["error"]["code"] == -32603
        await a.serves_still()


HIDDEN = "a\u202eb\U000e0041c"


@both_eras
async def test_t190_every_text_of_a_sampling_request_is_visible_to_the_person(bystander_host, era):
    model = Model()
    tool = {"name": "rm", "description": HIDDEN, "inputSchema": {"type": "object", "title": HIDDEN}}
    result = {"type": "tool_result", "toolUseId": "1", "content": [{"type": "text", "text": HIDDEN}]}
    use = {**TOOL_USE, "input": {"x": HIDDEN}}
    messages = [
        sampling_message({"type": "text", "text": HIDDEN}),
        sampling_message(use, role="assistant"),
        sampling_message(result),
    ]
    params = {"messages": messages, "maxTokens": 5, "tools": [tool], "stopSequences": [HIDDEN]}
    async with bystander_host(
        stdio_server("asks_during_calls.py", protocol=era, sampling="allow"), sampler=model
    ) as a:
        await a.call("ask", **asking(era, "sampling/createMessage", params))
    (request,) = model.asked
    shown = str(msgspec.json.encode(request), "utf-8")
    assert [sign for sign in "\u202e\U000e0041" if sign in shown] == []
    assert request.stop_sequences == ("abc",)
