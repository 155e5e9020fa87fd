"""T826: a conversation in a folder whose name is not UTF-8, as old archives contain. It can begin and be
continued, and its commands can change to a subfolder."""

import os
from pathlib import Path

import pytest

from tests.e2e import command
from tests.e2e.fake_provider import FakeProvider

pytestmark = [pytest.mark.slow, pytest.mark.requirement("AGT-1")]


def test_t826_a_conversation_begins_and_is_continued(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key")
    folder = home / os.fsdecode(b"caf\xe9")
    (folder / os.fsdecode(b"\xfcbung")).mkdir(parents=True)
    steps = [("Bash", {"command": "cd *bung"})], [("Bash", {"command": "touch here"})], ["Done."]
    with FakeProvider(*steps, ["Again."]) as provider:
        model = ("--model", "openai-chat:gpt-5.5", "--base-url", f"{provider.url}/v1")
        mode = ("--permission-mode", "bypassPermissions")
        first = command.run("-p", "go", *model, *mode, cwd=folder)
        second = command.run("-p", "and now?", "--continue", *model, cwd=folder)
    assert [(each.returncode, each.stdout, each.stderr) for each in (first, second)] == [
        (0, "Done.\n", ""),
        (0, "Again.\n", ""),
    ]
    assert [each["content"] for each in provider.requests[-1]["messages"] if each["role"] == "user"] == [
        "go",
        "and now?",
    ]
    assert os.listdir(os.fsencode(folder / os.fsdecode(b"\xfcbung"))) == [b"here"]
