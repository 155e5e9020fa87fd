"""T814: the answer of a person or model to a question of a server is not sent once a rule denies the call
that the question belongs to. A server of the legacy era, which waits for the answer, still received it."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host, hook
from dragoman.interaction import FormAnswer, FormElicitation, SamplingAnswer, SamplingRequest
from dragoman.testing import ScriptedUser

pytestmark = pytest.mark.requirement("PRM-1")
SERVER = """
import json, sys

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
FORM = {"message": "Your name?", "requestedSchema": SCHEMA}
SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "say it"}}], "maxTokens": 10}
ANSWERS = {
    "initialize": {"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"},
                   "capabilities": {"tools": {}, "resources": {}}},
    "tools/list": {"tools": [{"name": each, "inputSchema": SCHEMA} for each in ("form", "sampling")]},
    "resources/list": {"resources": [{"name": "r", "uri": "a://r"}]},
}
waiting = None
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method in ANSWERS:
        answer = {"id": message["id"], "result": ANSWERS[method]}
    elif method in ("tools/call", "resources/read"):
        waiting = message
        is_model = message["params"].get("name") == "sampling"
        answer = {"id": "question", "params": SAMPLING if is_model else FORM,
                  "method": "sampling/createMessage" if is_model else "elicitation/create"}
    elif message.get("id") == "question":
        text = json.dumps(message)
        content = {"contents": [{"uri": "a://r", "text": text}], "content": [{"type": "text", "text": text}]}
        answer = {"id": waiting["id"], "result": content}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", **answer}), flush=True)
"""
TASKS = Path(__file__).parents[1] / "servers" / "runs_tasks.py"
SECRET = "typed by the person"


class Meanwhile(ScriptedUser):
    """Answers forms, and sampling requests in place of a model, and runs a callback meanwhile."""

    act: Callable[[], object]

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        self.act()
        return FormAnswer("accept", {"name": SECRET})

    async def sample(self, request: SamplingRequest) -> SamplingAnswer:
        self.act()
        return SamplingAnswer(content=({"type": "text", "text": SECRET},), model="model")


async def answer_received(ask: str, rule: str) -> str:
    """The answer that the server receives after the rule was added."""
    user = Meanwhile(reviews=[True, True])
    entry: dict[str, Any] = {
        "command": sys.executable,
        "args": ["-c", SERVER],
        "sampling": "allow",
        "protocol": "legacy",
    }
    async with Host(
        {"box": entry}, interaction=user, sampler=user, permission_mode="bypassPermissions"
    ) as host:
        await host.ready()
        user.act = lambda: host.add_rule("deny", rule)
        if ask == "resource":
            return (await host.resources.read("box", "a://r")).contents[0].text or ""
        return (await host.call(f"mcp__box__{ask}")).text


@pytest.mark.parametrize("ask", ["form", "sampling", "resource"])
@pytest.mark.parametrize("rule", ["mcp__box", "*"])
async def test_t814_the_answer_is_not_sent_to_the_server(home: Path, ask: str, rule: str):
    assert "the call that it belongs to is not allowed any more" in await answer_received(ask, rule)


@pytest.mark.parametrize("ask", ["form", "sampling", "resource"])
async def test_t814_a_rule_about_something_else_has_no_effect(home: Path, ask: str):
    assert SECRET in await answer_received(ask, "mcp__box__other")


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize(("rule", "is_told"), [("mcp__s", False), ("mcp__other", True)])
async def test_t814_the_answer_is_not_sent_to_a_task(home: Path, era: str, rule: str, is_told: bool):
    def answer(given: object) -> dict[str, object]:
        host.add_rule("deny", rule)
        return {"hookSpecificOutput": {"action": "accept", "content": {"name": "Ada"}}}

    entry = {"command": sys.executable, "args": ["-S", "-E", str(TASKS), era, str(home / "tasks")]}
    options: dict[str, Any] = {"hooks": [hook(answer, "Elicitation")], "permission_mode": "bypassPermissions"}
    async with Host({"s": entry}, **options) as host:
        await host.ready()
        await host.call("mcp__s__ask", timeout_seconds=5)
    assert ("Ada" in (home / "tasks").read_text()) == is_told
