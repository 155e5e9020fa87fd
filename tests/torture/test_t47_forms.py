"""T47: Forms of hostile servers. Requests for secrets, nested forms and floods are not shown to a person."""

import asyncio
import json
from typing import Any

import pytest

from dragoman import FormAnswer, FormElicitation, Host, PermissionAnswer
from dragoman.errors import InputUnavailable
from dragoman.forms import fields_of
from tests.cpu_time import CpuTimer
from tests.servers import stdio_server
from tests.servers.web import answers, streamable
from tests.torture.bystander_host import at_once, until
from tests.torture.conftest import LEGACY, MODERN

both_eras = pytest.mark.parametrize("era", [LEGACY, MODERN])


class Person:
    """Answers every form, and remembers them."""

    def __init__(self, *, is_slow: bool = False) -> None:
        self.shown: list[FormElicitation] = []
        self.at_once = 0
        self.most = 0
        self.gone = 0
        self.may_answer = asyncio.Event()
        if not is_slow:
            self.may_answer.set()

    async def allow(self, question: Any) -> PermissionAnswer:
        return PermissionAnswer(True)

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        self.shown.append(question)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.gone += 1
            raise
        finally:
            self.at_once -= 1
        return FormAnswer("accept", {field.name: "x" for field in question.fields if field.kind == "text"})


def form(properties: Any, **more: Any) -> dict[str, Any]:
    return {"message": "m", "requestedSchema": {"type": "object", "properties": properties, **more}}


def asking(era: str, params: dict[str, Any]) -> dict[str, Any]:
    in_round = {"in_round": True} if era == MODERN else {}
    return {"method": "elicitation/create", "params": params, **in_round}


HOSTILE = {
    "password": form({"password": {"type": "string"}}),
    "API key": form({"name": {"type": "string"}, "apiKey": {"type": "string"}}),
    "secret by its title": form({"x": {"type": "string", "title": "Your access token"}}),
    "secret by its format": form({"x": {"type": "string", "format": "password"}}),
    "secret as a default": form({"token": {"type": "string", "default": "sk-canary"}}),
    "nested": form({"x": {"type": "object", "properties": {"y": {"type": "string"}}}}),
    "a list of objects": form({"x": {"type": "array", "items": {"type": "object"}}}),
    "reference": form({"x": {"$ref": "http://127.0.0.1:9/", "type": "object"}}),
    "500 fields": form({f"f{n}": {"type": "string"} for n in range(500)}),
    "10 000 choices": form({"x": {"type": "string", "enum": [f"c{n}" for n in range(10_000)]}}),
}


@both_eras
@pytest.mark.parametrize("params", HOSTILE.values(), ids=HOSTILE.keys())
async def test_t47_a_hostile_form_is_refused_and_not_shown(bystander_host, era, params):
    person = Person()
    async with bystander_host(stdio_server("asks_during_calls.py", protocol=era), interaction=person) as a:
        async with at_once():
            outcome = await a.outcome("ask", **asking(era, params))
        if era == MODERN:
            assert isinstance(outcome.error, InputUnavailable)
        else:
            assert json.loads(outcome.text)["error"]["code"] == -32602
        assert "canary" not in outcome.text
        assert person.shown == []
        await a.serves_still()


async def test_t47_a_person_may_allow_forms_that_ask_for_secrets_and_is_warned(bystander_host):
    person = Person()
    settings = {"DRAGOMAN_SECRET_FORM_FIELDS": 1}
    entry = stdio_server("asks_during_calls.py", protocol=LEGACY)
    async with bystander_host(entry, interaction=person, settings=settings) as a:
        answer = json.loads(await a.call("ask", **asking(LEGACY, HOSTILE["password"])))
        assert answer["result"] == {"action": "accept", "content": {"password": "x"}}
    assert [field.is_secret for field in person.shown[0].fields] == [True]


@both_eras
async def test_t47_a_slow_pattern_takes_no_time(bystander_host, era):
    slow = form({"x": {"type": "string", "pattern": "^(a+)+$", "default": "a" * 60 + "b"}}, required=["x"])
    async with bystander_host(stdio_server("asks_during_calls.py", protocol=era), interaction=Person()) as a:
        async with at_once():
            outcome = await a.outcome("ask", **asking(era, slow))
        assert "must match the pattern" in outcome.text


def test_t47_patterns_that_are_expensive_to_compile_are_not_used():
    costly = {
        f"f{number}": {"type": "string", "pattern": pattern, "default": "a"}
        for number, pattern in enumerate((r"\p{L}{500}", "(a{1000}){1000}") * 32)
    }
    timer = CpuTimer()
    fields = fields_of({"type": "object", "properties": costly})

    assert timer.seconds() < 0.5
    assert [field.default for field in fields] == ["a"] * 64


async def test_t47_a_request_while_no_call_is_in_progress_is_refused(bystander_host):
    person = Person()
    async with (
        streamable(revisions=(LEGACY,)) as server,
        bystander_host({"type": "http", "url": server.url, "protocol": LEGACY}, interaction=person) as a,
    ):
        await until(lambda: server.asked("GET"))
        server.push({"jsonrpc": "2.0", "id": 1, **asking(LEGACY, form({}))})
        await until(lambda: server.answers_heard)
        assert server.answers_heard[0]["error"]["code"] == -32600
        assert await a.call("echo", text="go on") == "go on"
    assert person.shown == []


async def test_t47_a_request_on_the_stream_of_a_list_request_belongs_to_no_call(bystander_host):
    person = Person()
    asked = {"jsonrpc": "2.0", "id": 1, **asking(LEGACY, form({}))}

    def asked_first(reply: bytes) -> bytes:
        return b"data: " + json.dumps(asked).encode() + b"\n\ndata: " + reply + b"\n\n"

    async with streamable(revisions=(LEGACY,), on={"tools/list": answers.events(asked_first)}) as server:
        entry = {"type": "http", "url": server.url, "protocol": LEGACY}
        async with bystander_host(entry, interaction=person, wait=False):
            await until(lambda: server.answers_heard)
            assert server.answers_heard[0]["error"]["code"] == -32600
    assert person.shown == []


async def test_t47_a_question_in_the_stream_of_a_call_belongs_to_that_call_only(bystander_host):
    person = Person(is_slow=True)
    asked = {"jsonrpc": "2.0", "id": 1, **asking(LEGACY, form({}))}

    def asked_first(reply: bytes) -> bytes:
        return b"data: " + json.dumps(asked).encode() + b"\n\n"

    async with (
        streamable(revisions=(LEGACY,)) as server,
        bystander_host({"type": "http", "url": server.url, "protocol": LEGACY}, interaction=person) as a,
    ):
        holding = asyncio.create_task(a.host.call("mcp__hostile__hold", {}, call_id="other"))
        await until(lambda: server.asked("tools/call"))
        server.on["tools/call"] = answers.events(asked_first, end=False)
        calling = asyncio.create_task(a.host.call("mcp__hostile__echo", {"text": "?"}, call_id="asked"))
        await until(lambda: person.shown)
        assert [call.call_id for call in person.shown[0].calls] == ["asked"]
        calling.cancel()
        await until(lambda: person.gone)
        holding.cancel()
        await asyncio.wait([calling, holding])


@both_eras
async def test_t47_a_flood_of_questions_is_shown_one_at_a_time_and_limited(era):
    person = Person()
    servers = {name: stdio_server("asks_during_calls.py", protocol=era) for name in ("flood", "calm")}
    async with Host(servers, interaction=person, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=20)
        person.may_answer.clear()
        flood = [
            asyncio.create_task(host.call("mcp__flood__ask", asking(era, form({"n": {"type": "string"}}))))
            for _ in range(60)
        ]
        await until(lambda: person.shown)
        calm = asyncio.create_task(host.call("mcp__calm__ask", asking(era, form({"c": {"type": "string"}}))))
        await asyncio.sleep(0.2)
        person.may_answer.set()
        async with asyncio.timeout(30):
            await asyncio.gather(*flood, calm)
    order = [question.server for question in person.shown]
    assert person.most == 1
    assert order.index("calm") <= 2, "it waits for one question of the other server, not for all"
    assert len(order) <= 18
    said = [task.result().text for task in flood]
    refused = [text for text in said if "too many" in text]
    assert len(refused) + len(order) == 61


@both_eras
async def test_t47_an_answer_after_the_call_was_cancelled_is_dropped(era):
    person = Person(is_slow=True)
    async with Host(
        {"s": stdio_server("asks_during_calls.py", protocol=era)},
        interaction=person,
        permission_mode="bypassPermissions",
    ) as host:
        await host.ready(timeout=20)
        call = asyncio.create_task(host.call("mcp__s__ask", asking(era, form({}))))
        await until(lambda: person.shown)
        call.cancel()
        await until(lambda: person.gone)
        person.may_answer.set()
        assert (await host.call("mcp__s__echo", {"message": "on"})).text == "on"


@both_eras
async def test_t47_without_a_person_a_form_is_refused_or_declined(bystander_host, era):
    async with bystander_host(stdio_server("asks_during_calls.py", protocol=era)) as a, at_once():
        outcome = await a.outcome("ask", **asking(era, form({})))
        assert "this client does not offer elicitation/create" in outcome.text
