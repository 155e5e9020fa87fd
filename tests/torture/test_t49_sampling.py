"""T49: Sampling requests of hostile servers.

Refused by default; limited where allowed; without other context."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.calls.sampling import MESSAGE_LIMIT, SAMPLING_LIMIT_BYTES
from dragoman.config.load import load
from dragoman.config.scopes import Sources
from dragoman.errors import InputUnavailable
from dragoman.interaction import SamplingAnswer, SamplingRequest
from tests.servers import stdio_server
from tests.torture.bystander_host import at_once, until
from tests.torture.conftest import LEGACY, MODERN

both_eras = pytest.mark.parametrize("era", [LEGACY, MODERN])
HI = {"role": "user", "content": {"type": "text", "text": "Hi"}}
HELLO = {"messages": [HI], "maxTokens": 50}
TOOLS = [{"name": "rm", "inputSchema": {"type": "object"}}]


class Model:
    def __init__(self, *, supports_tools: bool = False, answer: Any = None, hangs: bool = False) -> None:
        self.supports_tools = supports_tools
        self.asked: list[SamplingRequest] = []
        self.gone = 0
        self._answer = answer or SamplingAnswer(content=({"type": "text", "text": "Hello"},), model="m")
        self._hangs = hangs

    async def sample(self, request: SamplingRequest) -> SamplingAnswer:
        self.asked.append(request)
        if self._hangs:
            try:
                await asyncio.Event().wait()
            finally:
                self.gone += 1
        return self._answer


def asking(era: str, params: dict[str, Any]) -> dict[str, Any]:
    in_round = {"in_round": True} if era == MODERN else {}
    return {"method": "sampling/createMessage", "params": params, **in_round}


def entry(era: str, mode: str = "allow") -> dict[str, Any]:
    return stdio_server("asks_during_calls.py", protocol=era, sampling=mode)


@both_eras
async def test_t49_by_default_no_sampling_request_reaches_the_model(bystander_host, era):
    model = Model()
    async with bystander_host(stdio_server("asks_during_calls.py", protocol=era), sampler=model) as a:
        async with at_once(20):
            outcomes = await asyncio.gather(*(a.outcome("ask", **asking(era, HELLO)) for _ in range(100)))
        assert all("does not offer sampling/createMessage" in each.text for each in outcomes)
        await a.serves_still()
    assert model.asked == []


@both_eras
async def test_t49_the_number_of_concurrent_sampling_requests_is_limited(bystander_host, era):
    model = Model()
    async with bystander_host(entry(era), sampler=model) as a:
        async with at_once(20):
            outcomes = await asyncio.gather(*(a.outcome("ask", **asking(era, HELLO)) for _ in range(100)))
        assert len(model.asked) == 10
        assert len([each for each in outcomes if "Hello" in each.text]) == 10
        await a.serves_still()


@both_eras
async def test_t49_tokens_are_limited_and_no_context_is_added(bystander_host, era):
    model = Model()
    async with bystander_host(entry(era), sampler=model) as a:
        for context in ("allServers", "thisServer"):
            await a.outcome("ask", **asking(era, {**HELLO, "maxTokens": 10**9, "includeContext": context}))
    assert [request.max_tokens for request in model.asked] == [4096, 4096]
    assert {len(request.messages) for request in model.asked} == {1}


USE = {"type": "tool_use", "id": "1", "name": "rm", "input": {}}
RESULT = {"type": "tool_result", "toolUseId": "1", "content": []}
INVALID: dict[str, dict[str, Any]] = {
    "no messages": {"messages": [], "maxTokens": 5},
    "no limit": {"messages": [HI]},
    "a negative limit": {**HELLO, "maxTokens": -1},
    "an unknown role": {**HELLO, "messages": [{**HI, "role": "system"}]},
    "an unknown block": {**HELLO, "messages": [{"role": "user", "content": {"type": "resource"}}]},
    "an empty message": {**HELLO, "messages": [{"role": "user", "content": []}]},
    "too many messages": {**HELLO, "messages": [HI] * (MESSAGE_LIMIT + 1)},
    "too large": {**HELLO, "systemPrompt": "x" * SAMPLING_LIMIT_BYTES},
    "tools that were not declared": {**HELLO, "tools": TOOLS},
    "a choice of tools": {**HELLO, "toolChoice": {"mode": "auto"}},
    "a use without a result": {**HELLO, "messages": [{"role": "assistant", "content": [USE]}]},
    "a result without a use": {**HELLO, "messages": [{"role": "user", "content": [RESULT]}]},
    "a result beside a text": {
        **HELLO,
        "messages": [
            {"role": "assistant", "content": USE},
            {"role": "user", "content": [RESULT, HI["content"]]},
        ],
    },
}


@both_eras
@pytest.mark.parametrize("params", INVALID.values(), ids=INVALID.keys())
async def test_t49_an_invalid_sampling_request_does_not_reach_the_model(bystander_host, era, params):
    model = Model()
    async with bystander_host(entry(era), sampler=model) as a:
        async with at_once():
            outcome = await a.outcome("ask", **asking(era, params))
        if era == MODERN:
            assert isinstance(outcome.error, InputUnavailable)
        else:
            assert json.loads(outcome.text)["error"]["code"] == -32602
    assert model.asked == []


@pytest.mark.requirement("ASK-4")
@both_eras
async def test_t49_tool_calls_in_sampling_are_run_by_the_server(bystander_host, era):
    answer = SamplingAnswer(content=(USE,), model="m", stop_reason="toolUse")
    model = Model(supports_tools=True, answer=answer)
    messages = [HI, {"role": "assistant", "content": [USE]}, {"role": "user", "content": [RESULT]}]
    params = {**HELLO, "messages": messages, "tools": TOOLS, "toolChoice": {"mode": "required"}}
    async with bystander_host(entry(era), sampler=model) as a:
        result = json.loads(await a.call("ask", **asking(era, params)))["result"]
    assert result == {"role": "assistant", "content": USE, "model": "m", "stopReason": "toolUse"}
    (request,) = model.asked
    assert (request.tools, request.tool_choice) == (tuple(TOOLS), "required")


@both_eras
@pytest.mark.parametrize(
    "answer",
    [
        "text",
        SamplingAnswer(content=(), model="m"),
        SamplingAnswer(content=(USE,), model="m"),
        SamplingAnswer(content=({"type": "resource"},), model="m"),
    ],
    ids=["no answer", "empty", "a tool that was not offered", "an unknown block"],
)
async def test_t49_an_invalid_answer_of_the_model_is_not_sent(bystander_host, era, answer):
    async with bystander_host(entry(era), sampler=Model(answer=answer)) as a:
        outcome = await a.outcome("ask", **asking(era, HELLO))
        assert "the model's answer cannot be sent" in outcome.text


@both_eras
async def test_t49_a_model_that_never_answers_ends_with_the_call(era):
    model = Model(hangs=True)
    options: Any = {"permission_mode": "bypassPermissions", "sampler": model}
    async with Host({"s": entry(era)}, **options) as host:
        await host.ready(timeout=20)
        call = asyncio.create_task(host.call("mcp__s__ask", asking(era, HELLO)))
        await until(lambda: model.asked)
        call.cancel()
        await until(lambda: model.gone)
        assert (await host.call("mcp__s__echo", {"message": "on"})).text == "on"


def test_t49_a_project_cannot_grant_its_servers_sampling_or_roots(home: Path):
    claims = {"url": "https://box.example/mcp", "sampling": "allow", "roots": True}
    (home / "work" / ".mcp.json").write_text(json.dumps({"mcpServers": {"box": claims}}))
    box = load(Sources.here()).servers["box"]
    assert box.config is not None
    assert (box.config.sampling, box.config.roots) == ("ask", None)
    told = (
        "has no effect in scope project: it applies only in your own settings, in code and in the "
        "administrator's"
    )
    assert [warning for warning in box.warnings if "no effect" in warning] == [
        f"sampling: allow {told} file",
        f"roots {told} file",
    ]
