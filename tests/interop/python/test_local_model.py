"""A real model, offline and very small: one constrained tool call, and one answer to a server's sampling."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.command import DRAGOMAN, LIMIT_SECONDS

Part = Callable[..., dict[str, Any]]


def run(part: Part, *words: str) -> subprocess.CompletedProcess[str]:
    """The command, with the model's packages."""
    found = part("local-model")
    return subprocess.run(
        [found["command"], *found["args"], str(DRAGOMAN), *words],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.requirement("AGT-2")
@pytest.mark.needs("local-model")
def test_a_real_model_makes_a_constrained_call(part: Part) -> None:
    done = run(
        part,
        *("--model", "local:smollm2", "-p", "Call mcp__demo__add with a=40 and b=2."),
        *("--mcp-config", "demo", "--allowed-tools", "mcp__demo", "--output-format", "stream-json"),
    )
    assert done.returncode == 0, done.stderr
    assert "for smoke tests only" in done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    (call,) = [
        item
        for line in lines
        if line["type"] == "assistant"
        for item in line["message"]["content"]
        if item["type"] == "tool_use"
    ]
    assert call["name"] == "mcp__demo__add"
    assert {type(call["input"][name]) for name in ("a", "b")} <= {int, float}
    (result,) = [item for line in lines if line["type"] == "user" for item in line["message"]["content"]]
    assert float(result["content"]) == call["input"]["a"] + call["input"]["b"]
    assert lines[-1]["subtype"] == "success"
    assert lines[-1]["result"]
    assert lines[-1]["usage"]["output_tokens"] > 0


@pytest.mark.requirement("ASK-4")
@pytest.mark.needs("local-model", "server-everything")
def test_a_real_model_answers_a_server_that_samples(part: Part) -> None:
    entry = {**part("server-everything"), "sampling": "allow", "protocol": "2025-11-25"}
    done = run(
        part,
        *("call", "mcp__e__trigger-sampling-request", "prompt=Say hello.", "maxTokens=20"),
        *("--model", "local:smollm2", "--yes", "--mcp-config", json.dumps({"mcpServers": {"e": entry}})),
    )
    assert done.returncode == 0, done.stderr
    assert "local:smollm2" in done.stdout
    assert "LLM sampling result" in done.stdout
