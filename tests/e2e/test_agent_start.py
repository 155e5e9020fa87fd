"""When the model library is imported: beside connecting servers, and by no command that needs no model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command import DRAGOMAN, LIMIT_SECONDS
from tests.e2e.fake_provider import FakeProvider

WATCH = """
import os, sys
seen = set()
def note(event, arguments):
    if event == "import":
        what = arguments[0].partition(".")[0]
        if what not in ("pydantic_ai", "anthropic", "openai", "textual"):
            return
    elif event == "subprocess.Popen":
        what = "server" if any("dragoman.demo" in str(word) for word in arguments[1] or ()) else ""
    else:
        return
    if what and what not in seen and sys.argv[0].endswith("dragoman"):
        seen.add(what)
        with open(os.environ["NOTES"], "a") as file:
            file.write(what + "\\n")
sys.addaudithook(note)
"""


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with what the command did first: imports of heavy packages, the start of the demo server."""
    (tmp_path / "sitecustomize.py").write_text(WATCH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key")
    (tmp_path / "notes").touch()
    return tmp_path / "notes"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(DRAGOMAN), *words],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        stdin=subprocess.DEVNULL,
    )


CONFIG = json.dumps({"mcpServers": {"demo": {"command": sys.executable, "args": ["-m", "dragoman.demo"]}}})


@pytest.mark.requirement("AGT-1")
def test_servers_begin_to_connect_before_the_model_library_is_imported(notes: Path) -> None:
    with FakeProvider(["Hello."]) as provider:
        base = f"{provider.url}/v1"
        done = run("--model", "openai-chat:m", "--base-url", base, "-p", "hi", "--mcp-config", CONFIG)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello.\n", "")
    order = notes.read_text().split()
    assert order[0] == "server"
    assert {"pydantic_ai", "openai"} <= set(order)
    assert not {"anthropic", "textual"} & set(order), "only what this model needs"


@pytest.mark.slow
@pytest.mark.requirement("AGT-2")
@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("tools", "--mcp-config", CONFIG),
        ("call", "mcp__demo__add", "a=1", "b=2", "--mcp-config", CONFIG),
        ("mcp", "list"),
        ("agents", "list"),
        ("permissions", "list"),
        ("resources", "--mcp-config", CONFIG),
        ("logs",),
        ("-p", "hi", "--model", "nonsense"),
        ("-p", "hi", "--agent", "nobody"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_command_without_a_model_never_imports_its_library(words: tuple[str, ...], notes: Path) -> None:
    run(*words)
    assert set(notes.read_text().split()) <= {"server"}
    assert os.path.exists(notes)
