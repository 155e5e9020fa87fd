"""Whole conversations with the `dragoman` command, the real client libraries and a provider on loopback."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import Terminal
from tests.e2e.fake_provider import FakeProvider, Part
from tests.e2e.forked import run

pytestmark = pytest.mark.slow

ANTHROPIC, CHAT, RESPONSES = "anthropic:claude-sonnet-5", "openai-chat:gpt-5.5", "openai:gpt-5.5"
MODELS = pytest.mark.parametrize("model", [ANTHROPIC, CHAT, RESPONSES])


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-key")
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key")


def ask(provider: FakeProvider, model: str, *words: str) -> Any:
    return run(*_said(provider, model), *words)


def _said(provider: FakeProvider, model: str) -> tuple[str, ...]:
    base = provider.url if model == ANTHROPIC else f"{provider.url}/v1"
    return ("--model", model, "--base-url", base)


@MODELS
@pytest.mark.requirement("CAL-4")
def test_read_only_calls_run_concurrently(model: str) -> None:
    entry = {"command": sys.executable, "args": [str(Path(__file__).parent / "meeting_server.py")]}
    config = json.dumps({"mcpServers": {"m": entry}})
    both: list[Part] = [("mcp__m__meet", {"name": "one"}), ("mcp__m__meet", {"name": "two"})]
    with FakeProvider(both, ["They met."]) as provider:
        done = ask(provider, model, "-p", "go", "--mcp-config", config, "--allowed-tools", "mcp__m")
    assert (done.returncode, done.stdout, done.stderr) == (0, "They met.\n", "")
    assert provider.tool_results(1) == ["one has met the other", "two has met the other"]


@MODELS
@pytest.mark.requirement("CAT-7")
def test_a_deferred_tool_is_found_by_search_and_called(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_TOOL_SHARE_PERCENT", "0")
    script: tuple[list[Part], ...] = (
        [("tool_search", {"query": "add two numbers", "max_results": 1})],
        [("mcp__demo__add", {"a": 40, "b": 2})],
        ["It is 42."],
    )
    with FakeProvider(*script) as provider:
        done = ask(provider, model, "-p", "40 and 2?", "--mcp-config", "demo", "--allowed-tools", "mcp__demo")
    assert (done.returncode, done.stdout, done.stderr) == (0, "It is 42.\n", "")
    first, second, third = (provider.tools(number) for number in range(3))
    assert "tool_search" in first
    assert not [name for name in first if name.startswith("mcp__")]
    assert second == [*first, "mcp__demo__add"], "found, at the end; the others stay where they were"
    assert third == second
    assert "mcp__demo__add" in provider.tool_results(1)[0]
    assert provider.tool_results(2)[-1] == "42"


@MODELS
@pytest.mark.requirement("AGT-2")
def test_a_large_result_is_saved_and_queried(model: str) -> None:
    def query(provider: FakeProvider) -> list[Part]:
        (result,) = provider.tool_results(1)
        handle = re.search(r'handle="([0-9a-f]+)"', result)
        assert handle is not None
        assert len(result) < 50_000
        return [("read_result", {"handle": handle[1], "grep": "19999,"})]

    with FakeProvider([("mcp__demo__table", {"rows": 20_000})], query, ["Found it."]) as provider:
        done = ask(provider, model, "-p", "go", "--mcp-config", "demo", "--allowed-tools", "mcp__demo")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Found it.\n", "")
    assert "19999,api,us-east,162" in provider.tool_results(2)[-1]


@pytest.mark.requirement("PRM-3")
def test_permission_is_asked_remembered_and_explained(home: Path) -> None:
    add: list[Part] = [("mcp__demo__add", {"a": 40, "b": 2})]
    with FakeProvider(add, ["It is 42."], add, ["Still 42."], add, ["And still."]) as provider:
        words = (*_said(provider, CHAT), "--mcp-config", "demo")
        with Terminal(*words) as terminal:
            terminal.type(b"40 and 2?\n")
            terminal.answer(b"a")  # always, in every project
            terminal.wait_for("It is 42.")
            terminal.type(b"again\n")
            terminal.wait_for("Still 42.")
            terminal.type(b"/exit\n")
            terminal.finish()
        assert terminal.process.returncode == 0
        done = run(*words, "-p", "once more")
    assert (done.returncode, done.stdout) == (0, "And still.\n")
    assert provider.tool_results(5)[-1] == "42"
    explained = run("permissions", "explain", "mcp__demo__add", "--mcp-config", "demo")
    assert "mcp__demo__add" in explained.stdout
    assert "settings.json" in explained.stdout
    assert "allow" in explained.stdout.lower()


def test_a_server_that_cannot_be_started_is_named_before_the_first_line_of_a_plain_conversation() -> None:
    config = json.dumps({"mcpServers": {"broken": {"command": "nosuchprogram"}}})
    with FakeProvider() as provider, Terminal(*_said(provider, CHAT), "--mcp-config", config) as terminal:
        terminal.wait_for("> ")
        terminal.type(b"/exit\n")
        shown = " ".join(terminal.finish().split())
    assert (
        "! server broken: start failed: there is no program 'nosuchprogram' on PATH. "
        "Install it, or give its full path as `command`. >"
    ) in shown


@pytest.mark.requirement("PRM-2")
def test_in_mode_auto_a_model_decides_about_calls() -> None:
    add: list[Part] = [("mcp__demo__add", {"a": 40, "b": 2})]
    allows: list[Part] = ['{"decision": "allow", "reason": "the user asked for a sum"}']
    unsure: list[Part] = ["I allow it!"]
    words = ("-p", "40 and 2?", "--mcp-config", "demo", "--permission-mode", "auto")
    with FakeProvider(add, allows, ["It is 42."]) as provider:
        done = ask(provider, ANTHROPIC, *words)
    assert (done.returncode, done.stdout) == (0, "It is 42.\n")
    document = json.loads(provider.requests[1]["messages"][0]["content"][0]["text"])
    assert document["call"]["arguments"] == {"a": 40, "b": 2}
    assert document["conversation"][0] == {"role": "user", "text": "40 and 2?"}
    assert "tools" not in provider.requests[1]
    with FakeProvider(add, unsure, ["I may not."]) as provider:
        assert ask(provider, ANTHROPIC, *words).stdout == "I may not.\n"
    assert "not allowed" in provider.tool_results(2)[0]
