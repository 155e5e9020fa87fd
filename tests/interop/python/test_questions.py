"""The official SDK's everything-server asks: every `input_required` flow, and requests of the legacy era."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import InputUnavailable
from dragoman.interaction import SamplingAnswer, SamplingRequest
from dragoman.testing import ScriptedUser
from tests.interop.remote import RECIPES, Remote

Part = Callable[..., dict[str, Any]]
pytestmark = pytest.mark.needs("sdk-everything-server")


class Model:
    async def sample(self, request: SamplingRequest) -> SamplingAnswer:
        return SamplingAnswer(content=({"type": "text", "text": "Paris"},), model="m-1")


@asynccontextmanager
async def host_of(part: Part, revision: str, user: Any, **more: Any) -> AsyncGenerator[Host]:
    async with Remote(RECIPES["sdk-http"], part) as server:
        entry = {**server.entry, "protocol": revision, "roots": True, "sampling": "allow"}
        more = {"sampler": Model(), "permission_mode": "bypassPermissions", **more}
        async with Host({"e": entry}, interaction=user, **more) as host:
            await host.ready(timeout=30)
            yield host


async def called(host: Host, name: str, **arguments: Any) -> str:
    outcome = await host.call(f"mcp__e__test_{name}", arguments, timeout_seconds=30)
    assert not outcome.is_error, outcome.text
    return outcome.text


FLOWS = {
    "elicitation": ([{"name": "Ada"}], "Hello, Ada!"),
    "sampling": ([{}], "Model said: Paris"),
    "list_roots": ([{}], "Client exposed 1 root(s)."),
    "request_state": ([{"ok": True}], "state-ok: confirmation received"),
    "multiple_inputs": ([{"name": "Ada"}], "All inputs received."),
    "multi_round": ([{"name": "Ada"}, {"color": "red"}], "Ada likes red."),
    "tampered_state": ([{"ok": True}], "state-ok: round-1"),
}


@pytest.mark.requirement("ASK-1", "ASK-4", "ASK-5")
async def test_every_flow_with_input_is_completed(part: Part) -> None:
    user = ScriptedUser(forms=[answer for answers, _ in FLOWS.values() for answer in answers if answer])
    async with host_of(part, "2026-07-28", user) as host:
        for name, (_, expected) in FLOWS.items():
            assert await called(host, f"input_required_result_{name}") == expected, name
    assert {call.name for form in user.forms for call in form.calls} == {
        f"mcp__e__test_input_required_result_{name}"
        for name, (answers, _) in FLOWS.items()
        if answers != [{}]
    }


@pytest.mark.requirement("ASK-1")
async def test_a_prompt_asks_for_input_first(part: Part) -> None:
    user = ScriptedUser(forms=[{"context": "rain"}])
    async with host_of(part, "2026-07-28", user) as host:
        (prompt,) = [
            each
            for each in await host.prompts.list()
            if each.wire_name == "test_input_required_result_prompt"
        ]
        result = await host.prompts.get(prompt.name)
    assert result.messages[0].content.as_text() == "Use the following context: rain"
    assert [call.method for form in user.forms for call in form.calls] == ["prompts/get"]


async def test_undeclared_capabilities_are_not_requested(part: Part) -> None:
    async with host_of(part, "2026-07-28", None, sampler=None) as host:
        outcome = await host.call("mcp__e__test_input_required_result_elicitation", {})
    assert isinstance(outcome.error, InputUnavailable), outcome
    assert "this client does not offer elicitation/create" in outcome.text


@pytest.mark.requirement("ASK-1", "ASK-4")
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_a_legacy_server_asks_during_a_call(part: Part, revision: str) -> None:
    enums = {
        "untitledSingle": "active",
        "titledSingle": "low",
        "untitledMulti": ["read", "write"],
        "titledMulti": ["bug"],
        "legacyEnum": "small",
    }
    user = ScriptedUser(forms=[{"response": "yes"}, {}, enums])
    async with host_of(part, revision, user) as host:
        assert 'content={"response":"yes"}' in await called(host, "elicitation", message="?")
        defaults = await called(host, "elicitation_sep1034_defaults")
        assert "action=accept" in defaults
        assert len(json.loads(defaults.partition("content=")[2])) == 5
        assert "action=accept" in await called(host, "elicitation_sep1330_enums")
        assert await called(host, "sampling", prompt="?") == "LLM response: Paris"
    assert [len(form.calls) for form in user.forms] == [1, 1, 1]
