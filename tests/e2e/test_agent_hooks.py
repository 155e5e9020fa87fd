"""Hooks of a conversation as programs: JSON on stdin, exit code 2, text on stdout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fake_provider import FakeProvider
from tests.e2e.forked import run

pytestmark = pytest.mark.requirement("PRM-5")

MODEL = "openai-chat:gpt-5.5"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key")


def hooks(home: Path, **commands: str) -> None:
    folder = home / ".dragoman"
    folder.mkdir(exist_ok=True)
    groups = {
        event: [{"hooks": [{"type": "command", "command": command}]}] for event, command in commands.items()
    }
    (folder / "settings.json").write_text(json.dumps({"hooks": groups}))


def ask(provider: FakeProvider, prompt: str, *words: str) -> Any:
    return run("--model", MODEL, "--base-url", f"{provider.url}/v1", "-p", prompt, *words)


def test_a_script_gets_all_events_of_a_conversation_with_the_names_of_claude_code(home: Path) -> None:
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd")
    hooks(home, **dict.fromkeys(events, f"cat >> {home}/seen; echo >> {home}/seen"))
    with FakeProvider([("Glob", {"pattern": "*.txt"})], ["There are none."]) as provider:
        done = ask(provider, "Which texts are here?", "--output-format", "json")
    assert done.returncode == 0, done.stderr
    seen = [json.loads(line) for line in (home / "seen").read_text().splitlines() if line]
    assert [given["hook_event_name"] for given in seen] == list(events)
    session = json.loads(done.stdout)["session_id"]
    assert {given["session_id"] for given in seen} == {session}
    (path,) = {given["transcript_path"] for given in seen}
    assert Path(path).stem == session
    assert "Which texts are here?" in Path(path).read_text()
    assert seen[1]["prompt"] == "Which texts are here?"
    assert (seen[3]["stop_hook_active"], seen[3]["last_assistant_message"]) == (False, "There are none.")
    assert (seen[0]["source"], seen[4]["reason"]) == ("startup", "other")


def test_text_of_a_script_reaches_the_first_prompt(home: Path) -> None:
    hooks(home, SessionStart="echo The build is broken.", UserPromptSubmit="echo It is Monday.")
    with FakeProvider(["I see."]) as provider:
        ask(provider, "Hi")
    system, user = provider.requests[0]["messages"][0], provider.requests[0]["messages"][1:]
    assert "The build is broken." in system["content"]
    assert "It is Monday." in json.dumps(user)


def test_exit_code_2_refuses_the_prompt_before_it_leaves(home: Path) -> None:
    hooks(home, UserPromptSubmit="grep -q sk-1 && { echo 'no keys' >&2; exit 2; } || exit 0")
    with FakeProvider(["Hello."]) as provider:
        refused = ask(provider, "my key is sk-1")
        assert (refused.returncode, refused.stdout) == (6, "")
        assert "A hook refused the prompt: no keys" in refused.stderr
        assert provider.requests == []
        assert ask(provider, "hi").stdout == "Hello.\n"


def test_exit_code_2_makes_the_model_continue(home: Path) -> None:
    script = f"test -e {home}/done && exit 0; touch {home}/done; echo 'run the tests' >&2; exit 2"
    hooks(home, Stop=script)
    with FakeProvider(["Done."], ["The tests pass."]) as provider:
        assert ask(provider, "Fix it.").stdout == "The tests pass.\n"
    assert "run the tests" in json.dumps(provider.requests[1]["messages"][-1])


def test_hooks_of_a_project_do_not_run(home: Path) -> None:
    folder = home / "work/.dragoman"
    folder.mkdir()
    command = {"hooks": [{"type": "command", "command": f"touch {home}/ran"}]}
    (folder / "settings.local.json").write_text(json.dumps({"hooks": {"UserPromptSubmit": [command]}}))
    with FakeProvider(["Hello."]) as provider:
        done = ask(provider, "hi")
    assert done.stdout == "Hello.\n"
    assert not (home / "ran").exists()
