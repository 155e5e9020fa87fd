"""Agents in files, with the command: listed, approved, talked to, given work."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.e2e.fake_provider import FakeProvider
from tests.e2e.forked import run

pytestmark = pytest.mark.requirement("CFG-13")

MODEL = "openai-chat:gpt-5.5"
ENTRY = json.dumps({"command": sys.executable, "args": ["-m", "dragoman.demo"]})
COUNTER = f"""\
---
description: Counts.
servers: [{{own: {ENTRY}}}]
requiredServers: [own]
---
You count.
"""


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key")


def project_agent(home: Path) -> Path:
    path = home / "work/.dragoman/agents/counter.md"
    path.parent.mkdir(parents=True)
    path.write_text(COUNTER)
    return path


def test_an_agent_of_a_project_is_used_once_it_is_approved(home: Path) -> None:
    project_agent(home)
    listed = run("agents", "list")
    assert (listed.returncode, listed.stdout) == (0, "counter  [needs approval]  Counts.\n")
    with FakeProvider() as provider:
        words = ("--model", MODEL, "--base-url", f"{provider.url}/v1", "-p", "go")
        refused = run(*words, "--agent", "counter")
    assert refused.returncode == 3
    assert "is not approved" in refused.stderr
    assert "needs approval: `dragoman agents approve counter`" in " ".join(refused.stderr.split())
    assert provider.requests == []

    assert run("agents", "approve", "counter").returncode == 3, "without a terminal it is not asked"
    approved = run("agents", "approve", "counter", "--yes")
    assert "You count." in approved.stdout
    (agent,) = json.loads(run("agents", "list", "--json").stdout)["agents"]
    assert (agent["name"], agent["state"], agent["scope"]) == ("counter", "ready", "project")


def test_a_conversation_with_an_agent_that_has_its_own_server(home: Path) -> None:
    project_agent(home)
    run("agents", "approve", "counter", "--yes")
    with FakeProvider([("mcp__own__add", {"a": 40, "b": 2})], ["It is 42."]) as provider:
        done = run(
            *("--model", MODEL, "--base-url", f"{provider.url}/v1", "--agent", "counter"),
            *("-p", "40 and 2?", "--allowed-tools", "mcp__own__add"),
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "It is 42.\n", "")
    assert provider.tool_results(1) == ["42"]
    assert "You count." in json.dumps(provider.requests[0]["messages"][0])


def test_the_model_starts_a_subagent(home: Path) -> None:
    path = home / ".dragoman/agents/counter.md"
    path.parent.mkdir(parents=True)
    path.write_text(COUNTER)
    script = (
        [("Task", {"agent": "counter", "prompt": "Add 40 and 2."})],
        [("mcp__own__add", {"a": 40, "b": 2})],
        ["42, says the server."],
        ["It is 42."],
    )
    with FakeProvider(*script) as provider:
        done = run(
            *("--model", MODEL, "--base-url", f"{provider.url}/v1", "-p", "40 and 2?"),
            *("--allowed-tools", "mcp__own__add", "--output-format", "json"),
        )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["result"], result["num_turns"]) == ("It is 42.", 2)
    assert result["usage"]["output_tokens"] == 20, "that of the agent is counted"
    assert provider.tool_results(3) == ["42, says the server."]


def test_an_unknown_agent_is_named(home: Path) -> None:
    done = run("--model", MODEL, "-p", "go", "--agent", "nobody")
    assert done.returncode == 5
    assert "there is no agent 'nobody'" in done.stderr
