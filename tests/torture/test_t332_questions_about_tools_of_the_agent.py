"""T332: an ask rule or a hook that asks also applies to tools that need no permission by themselves."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host, hook
from dragoman.testing import InMemoryServer
from tests.e2e.fake_provider import FakeProvider
from tests.e2e.forked import run
from tests.torture import projects

pytestmark = pytest.mark.requirement("PRM-1")
ASK = json.dumps({"hookSpecificOutput": {"permissionDecision": "ask"}})
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "a rule": {"permissions": {"ask": ["Task"]}},
    "a rule with arguments": {"permissions": {"ask": ["Task(agent=count*)"]}},
    "a hook": {
        "hooks": {"PreToolUse": [{"matcher": "Task", "hooks": [{"command": f"cat <<'E'\n{ASK}\nE"}]}]}
    },
}


def worked(home: Path) -> list[str]:
    """The result that the model receives for work that it gives to an agent."""
    agent = home / ".dragoman/agents/counter.md"
    agent.parent.mkdir(parents=True, exist_ok=True)
    agent.write_text("---\ndescription: Counts.\n---\nYou count.\n")
    task = ("Task", {"agent": "counter", "prompt": "Count."})
    with FakeProvider([task], ["One."], ["Done."]) as provider:
        done = run("--model", "openai-chat:gpt-5.5", "--base-url", f"{provider.url}/v1", "-p", "go")
        assert done.returncode == 0, done.stderr
        return provider.tool_results(len(provider.requests) - 1)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-a-provider")


@pytest.mark.parametrize("how", SETTINGS)
def test_t332_starting_an_agent_is_asked_about(home: Path, how: str):
    projects.user(home, SETTINGS[how])
    (told,) = worked(home)
    assert told.startswith("Task was not allowed:")


def test_t332_a_managed_ask_rule_applies(home: Path):
    projects.managed(home, SETTINGS["a rule"])
    (told,) = worked(home)
    assert told.startswith("Task was not allowed: ask rule Task of enterprise")


def test_t332_an_ask_rule_for_everything_applies_to_the_agents_calls_and_not_to_its_start(home: Path):
    projects.user(home, {"permissions": {"ask": ["*"]}})
    assert worked(home) == ["One."]


async def test_t332_a_list_of_resources_is_asked_about():
    rules = {"ask": ["list_mcp_resources"]}
    async with Host({"one": InMemoryServer("one")}, rules=rules, permission_mode="bypassPermissions") as host:
        await host.ready()
        outcome = await host.toolbox().call("list_mcp_resources", {"server": "one"})
    assert outcome.error is not None
    assert outcome.error.code == "refused"


async def test_t332_a_hook_that_asks_about_a_search_applies():
    asks = hook(lambda given: {"permissionDecision": "ask"}, "PreToolUse", matcher="tool_search")
    async with Host({}, hooks=[asks], permission_mode="bypassPermissions") as host:
        outcome = await host.toolbox().call("tool_search", {"query": "add"})
    assert outcome.error is not None
    assert outcome.error.code == "refused"
