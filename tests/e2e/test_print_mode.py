"""`dragoman -p`: one answer for scripts, with the real client libraries against a provider on loopback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import command
from tests.e2e.command import DRAGOMAN, LIMIT_SECONDS, is_alive
from tests.e2e.fake_provider import FakeProvider
from tests.e2e.forked import run

pytestmark = [pytest.mark.slow, pytest.mark.requirement("AGT-1")]

ANTHROPIC, OPENAI = "anthropic:claude-sonnet-5", "openai-chat:gpt-5.5"
RESPONSES = "openai:gpt-5.5"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-key")
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key")


@pytest.fixture
def demo(home: Path) -> None:
    """The demo server, in the person's settings."""
    folder = home / ".dragoman"
    folder.mkdir(exist_ok=True)
    entry = {"command": sys.executable, "args": ["-m", "dragoman.demo"]}
    (folder / "settings.json").write_text(json.dumps({"mcpServers": {"demo": entry}}))


def ask(provider: FakeProvider, model: str, *words: str, input: str | None = None) -> Any:
    base = provider.url if model.startswith("anthropic") else f"{provider.url}/v1"
    said = ("--model", model, "--base-url", base, *words)
    return run(*said) if input is None else command.run(*said, input=input)


@pytest.mark.requirement("AGT-2")
@pytest.mark.parametrize("model", [ANTHROPIC, OPENAI, RESPONSES])
def test_a_tool_is_called_and_the_answer_printed(model: str, demo: None) -> None:
    with FakeProvider(["Let me see.", ("mcp__demo__add", {"a": 40, "b": 2})], ["It is 42."]) as provider:
        done = ask(provider, model, "-p", "40 and 2?", "--allowed-tools", "mcp__demo__add")
    assert (done.returncode, done.stdout, done.stderr) == (0, "It is 42.\n", "")
    assert provider.tool_results(1) == ["42"]
    assert all("canary-key" in key for key in provider.keys)
    assert {tool.get("name") or tool["function"]["name"] for tool in provider.requests[0]["tools"]} >= {
        "mcp__demo__add",
        "Read",
        "Bash",
    }


def test_an_unavailable_server_is_named_beside_the_answer(home: Path) -> None:
    folder = home / ".dragoman"
    folder.mkdir(exist_ok=True)
    entry = {"command": "/nonexistent/server"}
    (folder / "settings.json").write_text(json.dumps({"mcpServers": {"gone": entry}}))
    with FakeProvider(["Hello."]) as provider:
        done = ask(provider, OPENAI, "-p", "hello")
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert done.stderr == (
        "! server gone: start failed: there is no program '/nonexistent/server'. "
        "Install it, or give its full path as `command`.\n"
    )


def test_calls_that_would_be_asked_about_are_refused_and_reported(demo: None) -> None:
    with FakeProvider([("mcp__demo__add", {"a": 1, "b": 1})], ["I may not."]) as provider:
        done = ask(provider, OPENAI, "-p", "add", "--output-format", "json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["type"], result["subtype"], result["result"]) == ("result", "success", "I may not.")
    assert result["num_turns"] == 2
    assert result["usage"]["output_tokens"] == 10
    (denied,) = result["permission_denials"]
    assert (denied["tool_name"], denied["tool_input"]) == ("mcp__demo__add", {"a": 1, "b": 1})
    assert "not allowed" in provider.tool_results(1)[0]


def test_a_stream_of_json_lines_in_and_out(demo: None) -> None:
    lines = [{"type": "user", "message": {"role": "user", "content": text}} for text in ("one", "two")]
    given = "".join(json.dumps(line) + "\n" for line in lines)
    script: list[Any] = [[("mcp__demo__add", {"a": 1, "b": 1})], ["first"], ["second"]]
    with FakeProvider(*script) as provider:
        done = ask(
            provider,
            OPENAI,
            *("--input-format", "stream-json", "--output-format", "stream-json"),
            *("--allowed-tools", "mcp__demo"),
            input=given,
        )
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["type"] for line in said] == [
        *("system", "assistant", "user", "assistant", "result"),
        *("assistant", "result"),
    ]
    assert said[0]["mcp_servers"] == [{"name": "demo", "status": "connected"}]
    assert said[2]["message"]["content"][0]["content"] == "2"
    assert [line["result"] for line in said if line["type"] == "result"] == ["first", "second"]
    assert len({line["session_id"] for line in said}) == 1


@pytest.mark.requirement("AGT-5")
def test_a_conversation_is_continued_in_another_process(demo: None) -> None:
    with FakeProvider(["Noted."], ["It was blue."]) as provider:
        assert ask(provider, OPENAI, "-p", "My colour is blue.").stdout == "Noted.\n"
        assert ask(provider, OPENAI, "-c", "-p", "Which colour?").stdout == "It was blue.\n"
    texts = json.dumps(provider.requests[1]["messages"])
    assert "My colour is blue." in texts
    assert "Noted." in texts


@pytest.mark.requirement("AGT-2")
@pytest.mark.parametrize("model", [ANTHROPIC, OPENAI, RESPONSES])
def test_a_refused_key_ends_with_a_message(model: str, demo: None) -> None:
    with FakeProvider(401) as provider:
        done = ask(provider, model, "-p", "hi")
    assert (done.returncode, done.stdout) == (1, "")
    assert "the provider refuses the API key" in done.stderr
    assert "canary-key" not in done.stderr
    assert len(provider.requests) == 1


def test_a_model_that_never_ends_is_stopped(demo: None) -> None:
    with FakeProvider(*[[("mcp__demo__add", {"a": 1, "b": 1})]] * 3) as provider:
        done = ask(provider, OPENAI, "-p", "go", "--max-turns", "2", "--output-format", "json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["subtype"] == "error_max_turns"
    assert len(provider.requests) == 2


@pytest.mark.requirement("AGT-2")
def test_without_a_key_the_message_names_the_variable_and_the_commands_that_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.delenv("OPENAI_API_KEY")
    done = run("-p", "hi")
    assert (done.returncode, done.stdout) == (3, "")
    words = " ".join(done.stderr.split())
    assert words.startswith("error: no model is chosen")
    assert "Set one of ANTHROPIC_API_KEY, OPENAI_API_KEY, GOOGLE_API_KEY" in words
    assert "`dragoman tools`, `dragoman call` and `dragoman demo` need no model." in words
    done = run("-p", "hi", "--model", "anthropic:claude-sonnet-5")
    assert done.returncode == 3
    assert "there is no API key for anthropic" in done.stderr
    done = run("-p", "hi", "--model", "anthropic")
    assert (done.returncode, done.stderr.splitlines()[0]) == (3, "error: 'anthropic' is not a model")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--model", "nonsense", "-p", "x"), "'nonsense' is not a model"),
        (("--model", "x:y", "-p", "x"), "the model 'x:y' cannot be used"),
        (("--model", "anthropic:m", "--resume", "../../etc/passwd", "-p", "x"), "there is no conversation"),
        (("--model", "anthropic:m", "--resume", "no", "-p", "x"), "/resume in a conversation lists them"),
        (("--model", "anthropic:m", "--add-dir", "/nonexistent", "-p", "x"), "does not exist"),
        (
            ("--model", "anthropic:m", "tools"),
            "--model is for `dragoman` without a command",
        ),
        (
            ("--mcp-config", "demo", "tools"),
            "--mcp-config is for `dragoman` without a command; write the options of 'tools' after it",
        ),
        (
            ("--strict-mcp-config", "mcp", "list"),
            "--strict-mcp-config is for `dragoman` without a command; write the options of 'mcp' after it",
        ),
        (("-c", "tools"), "--continue is for `dragoman` without a command"),
    ],
)
def test_wrong_options_are_named(words: tuple[str, ...], problem: str) -> None:
    done = run(*words)
    assert done.returncode != 0
    assert problem in " ".join(done.stderr.split())


@pytest.mark.slow
@pytest.mark.requirement("AGT-5")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_ended_during_a_command_no_process_remains_and_the_conversation_is_complete(
    number: signal.Signals, home: Path
) -> None:
    pid_file = home / "pid"
    command = f"echo $$ > {pid_file}; sleep 300"
    with FakeProvider([("Bash", {"command": command})], ["Welcome back."]) as provider:
        words = ("--model", OPENAI, "--base-url", f"{provider.url}/v1", "-p", "go", "--allowed-tools", "Bash")
        process = subprocess.Popen([DRAGOMAN, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        _until(lambda: pid_file.exists() and pid_file.read_text())
        process.send_signal(number)
        process.communicate(timeout=20)
        assert process.returncode == (-number if number == signal.SIGKILL else 130)
        child = int(pid_file.read_text())
        _until(lambda: not is_alive(child))
        done = ask(provider, OPENAI, "-c", "-p", "Are you there?")
    assert (done.returncode, done.stdout) == (0, "Welcome back.\n")
    (result,) = provider.tool_results(1)
    assert "interrupted this call" in result


def _until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.requirement("AGT-2")
def test_the_providers_cache_is_used_and_its_prefix_never_changes(demo: None) -> None:
    script: list[Any] = [[("mcp__demo__add", {"a": 1, "b": 1})], ["Two."]]
    with FakeProvider(*script) as provider:
        ask(provider, ANTHROPIC, "-p", "add", "--allowed-tools", "mcp__demo__add")
    first, second = provider.requests
    assert first["tools"] == second["tools"]
    assert first["system"] == second["system"]
    assert "cache_control" in first["tools"][-1]
    assert "cache_control" in first["system"][-1]
    assert "cache_control" in second, "what was said so far is cached, too"
