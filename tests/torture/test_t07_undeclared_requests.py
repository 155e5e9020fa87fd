"""T07: A request for an undeclared client capability gets no result, and the call still ends."""

import json
from typing import Any

import pytest

from dragoman.errors import InputUnavailable, MalformedReply
from tests.servers import stdio_server
from tests.servers.web import answers, http_sse, streamable, websocket
from tests.servers.web.given_answers import replace_results
from tests.torture.bystander_host import MEGABYTE, at_once, until
from tests.torture.conftest import LEGACY, MODERN

QUESTIONS = [
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
    "tools/call",
    "no/such/method",
    "\x1b[2J",
]


class NoQuestionExpected:
    async def allow(self, question):
        raise AssertionError(f"a person was asked: {question}")


@pytest.mark.parametrize("method", QUESTIONS)
async def test_t07_a_legacy_server_gets_method_not_found_for_an_undeclared_capability(bystander_host, method):
    async with bystander_host(
        stdio_server("asks_during_calls.py", protocol=LEGACY, roots=False), interaction=NoQuestionExpected()
    ) as a:
        async with at_once():
            answer = json.loads(await a.call("ask", method=method))
        assert answer["error"]["code"] == -32601
        assert "result" not in answer


async def test_t07_a_legacy_server_may_ping(bystander_host):
    async with bystander_host(stdio_server("asks_during_calls.py", protocol=LEGACY)) as a, at_once():
        assert json.loads(await a.call("ask", method="ping"))["result"] == {}


async def test_t07_requests_of_a_server_that_reads_no_answers_use_bounded_memory(bystander_host, era):
    async with bystander_host(stdio_server("asks_without_listening.py", protocol=era)) as a:
        async with at_once(20):
            assert await a.call("pester", count=100_000) == "asked 100000 times"
        assert a.pulse.growth_bytes < 64 * MEGABYTE
        await a.serves_still()


@pytest.mark.parametrize("method", [*QUESTIONS, "ping"])
async def test_t07_a_modern_server_may_not_send_requests(bystander_host, method):
    async with bystander_host(
        stdio_server("asks_during_calls.py", protocol=MODERN), interaction=NoQuestionExpected()
    ) as a:
        async with at_once():
            assert await a.call("ask", method=method, patient=False) == "asked"
        warnings = [text for text in a.log() if "request" in text]
        assert len(warnings) == 1
        assert "\x1b" not in warnings[0]
        await a.serves_still()


async def test_t07_input_required_for_an_undeclared_capability_fails_the_call(bystander_host):
    async with bystander_host(
        stdio_server("wants_input.py", protocol=MODERN), interaction=NoQuestionExpected()
    ) as a:
        async with at_once():
            outcome = await a.outcome("act")
        assert isinstance(outcome.error, InputUnavailable)


async def test_t07_input_required_as_reply_to_tools_list_fails_the_server(bystander_host):
    async with bystander_host(
        stdio_server("wants_input.py", "list", protocol=MODERN), interaction=NoQuestionExpected()
    ) as a:
        assert (a.view.status, a.view.tool_count) == ("failed", 0)
        assert "input_required" in (a.view.reason or "")


# The same over the network.

SITES = {
    "http-json": lambda: streamable(revisions=(LEGACY,), replies="json"),
    "http-sse": lambda: streamable(revisions=(LEGACY,)),
    "sse": lambda: http_sse(revisions=(LEGACY, "2024-11-05")),
    "ws": lambda: websocket(revisions=(LEGACY,)),
}


def entry(kind: str, url: str, protocol: str) -> dict[str, str]:
    return {"type": kind.partition("-")[0], "url": url, "protocol": protocol}


def question(method: str, id: str = "question") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {}}


def answer_of_host_to(server: Any) -> list[dict[str, Any]]:
    """What the host answered to a request."""
    if hasattr(server, "answers_heard"):
        return server.answers_heard
    said = server.messages if hasattr(server, "messages") else [ask.message for ask in server.asks]
    return [message for message in said if message and "method" not in message]


@pytest.mark.parametrize("kind", SITES)
async def test_t07_a_legacy_server_over_the_network_gets_method_not_found_for_an_undeclared_capability(
    bystander_host, kind
):
    async with (
        SITES[kind]() as server,
        bystander_host(entry(kind, server.url, "legacy"), interaction=NoQuestionExpected()) as a,
    ):
        await until(lambda: kind[:4] != "http" or server.asked("GET"))
        for method in QUESTIONS:
            server.push(question(method, method))
        await until(lambda: len(answer_of_host_to(server)) == len(QUESTIONS))
        heard = {answer["id"]: answer for answer in answer_of_host_to(server)}
        assert set(heard) == set(QUESTIONS)
        assert {answer["error"]["code"] for answer in heard.values()} == {-32601}
        assert not any("result" in answer for answer in heard.values())
        assert await a.call("echo", text="go on") == "go on"


@pytest.mark.parametrize("method", [*QUESTIONS, "ping"])
async def test_t07_a_legacy_server_may_send_a_request_in_the_stream_of_a_call_and_the_call_still_ends(
    bystander_host, method
):
    def asked_first(reply: bytes) -> bytes:
        return b"data: " + json.dumps(question(method)).encode() + b"\n\ndata: " + reply + b"\n\n"

    async with (
        streamable(revisions=(LEGACY,), on={"tools/call": answers.events(asked_first)}) as server,
        bystander_host(entry("http", server.url, LEGACY), interaction=NoQuestionExpected()) as a,
    ):
        async with at_once():
            assert await a.call("echo", text="?") == "fine"
        await until(lambda: server.answers_heard)
        (answer,) = server.answers_heard
        assert ("result" in answer) == (method == "ping")


@pytest.mark.parametrize("method", [*QUESTIONS, "ping"])
async def test_t07_a_modern_server_may_not_send_requests_in_any_stream(bystander_host, method):
    def asked_first(reply: bytes) -> bytes:
        return b"data: " + json.dumps(question(method)).encode() + b"\n\ndata: " + reply + b"\n\n"

    async with (
        streamable(revisions=(MODERN,), on={"tools/call": answers.events(asked_first)}) as server,
        bystander_host(entry("http", server.url, MODERN), interaction=NoQuestionExpected()) as a,
    ):
        async with at_once():
            assert await a.call("echo", text="?") == "fine"
        warnings = [text for text in a.log() if "request" in text]
        assert len(warnings) == 1
        assert "\x1b" not in warnings[0]
        posted = [ask for ask in server.asks if ask.method == "POST" and ask.rpc is None]
        assert posted == [], "a modern client answers nothing"


ASKED = {"inputRequests": {"name": {"method": "elicitation/create", "params": {"message": "password?"}}}}
UNDECLARED = {
    "elicitation": ASKED,
    "sampling": {"inputRequests": {"x": {"method": "sampling/createMessage", "params": {"messages": []}}}},
    "roots": {"inputRequests": {"x": {"method": "roots/list"}}},
    "nonsense": {"inputRequests": {"x": {"method": "no/such/method"}}},
}
UNREADABLE = {"not even a question": {"inputRequests": {"x": 7}}, "nothing at all": {}}


@pytest.mark.parametrize("kind", ["http", "ws"])
@pytest.mark.parametrize("asked", UNDECLARED.values(), ids=UNDECLARED.keys())
async def test_t07_a_modern_server_over_the_network_gets_no_input_for_an_undeclared_capability(
    bystander_host, kind, asked
):
    async with {"http": streamable, "ws": websocket}[kind](revisions=(MODERN,)) as server:
        replace_results(server, {"tools/call": lambda _: {"resultType": "input_required", **asked}})
        async with bystander_host(entry(kind, server.url, MODERN), interaction=NoQuestionExpected()) as a:
            async with at_once():
                outcome = await a.outcome("echo", text="?")
            assert isinstance(outcome.error, InputUnavailable)


@pytest.mark.parametrize("kind", ["http", "ws"])
@pytest.mark.parametrize("asked", UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_t07_an_input_request_that_cannot_be_parsed_fails_the_call(bystander_host, kind, asked):
    async with {"http": streamable, "ws": websocket}[kind](revisions=(MODERN,)) as server:
        replace_results(server, {"tools/call": lambda _: {"resultType": "input_required", **asked}})
        async with bystander_host(entry(kind, server.url, MODERN), interaction=NoQuestionExpected()) as a:
            with pytest.raises(MalformedReply, match="malformed reply from hostile"):
                async with at_once():
                    await a.call("echo", text="?")


@pytest.mark.parametrize("kind", ["http", "ws"])
async def test_t07_input_required_as_reply_to_tools_list_fails_the_server_over_the_network(
    bystander_host, kind
):
    async with {"http": streamable, "ws": websocket}[kind](revisions=(MODERN,)) as server:
        trap = {"name": "trap", "inputSchema": {"type": "object"}}
        replace_results(
            server, {"tools/list": lambda _: {"resultType": "input_required", **ASKED, "tools": [trap]}}
        )
        async with bystander_host(entry(kind, server.url, MODERN), interaction=NoQuestionExpected()) as a:
            assert (a.view.status, a.view.tool_count) == ("failed", 0)
            assert "input_required" in (a.view.reason or "")
