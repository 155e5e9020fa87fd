"""`dragoman demo`: the first thing a newcomer runs."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.command import DRAGOMAN, Terminal, in_terminal, plain, run

TOOLS = ("add", "count", "picture", "table", "fail")

NO_NETWORK = """
import sys
def refuse(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"):
        raise RuntimeError(f"the demo uses the network: {event}")
sys.addaudithook(refuse)
"""


@pytest.mark.requirement("CLI-3")
def test_the_demo_needs_no_configuration_no_key_and_no_network(home: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK)
    bare = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([DRAGOMAN, "demo"], env=bare, capture_output=True, text=True, timeout=40)
    assert (done.returncode, done.stderr) == (0, "")
    for tool in TOOLS:
        assert f"mcp__demo__{tool}" in done.stdout
    assert "every one correct" in done.stdout
    assert "\x1b" not in done.stdout, "colour only on a terminal"
    assert "Traceback" not in done.stdout


@pytest.mark.slow
@pytest.mark.requirement("CAL-3")
def test_in_a_terminal_the_demo_has_colour_a_progress_bar_and_an_image() -> None:
    code, output = in_terminal("demo")
    assert code == 0
    assert "\x1b[1m" in output
    assert "━" in output
    assert " 50%" in output
    assert "20 of 40" in output
    assert plain(output).count("▀") == 28 * 14
    for tool in TOOLS:
        assert f"mcp__demo__{tool}" in output
    assert "\x1b" not in plain(output)
    assert "Traceback" not in output


@pytest.mark.slow
def test_with_json_the_demo_is_one_document_of_outcomes() -> None:
    done = run("demo", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    outcomes = json.loads(done.stdout)
    assert {outcome["tool"].removeprefix("mcp__demo__") for outcome in outcomes} == set(TOOLS)
    assert outcomes[0]["structured"] == {"sum": 42}
    assert [outcome["isError"] for outcome in outcomes] == [False, False, False, False, True, True]
    assert outcomes[-1]["error"]["code"] == "invalid-arguments"


@pytest.mark.requirement("AGT-1")
def test_a_conversation_with_a_scripted_model_needs_no_key_and_no_network(home: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK)
    bare = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([DRAGOMAN, "demo", "--agent"], env=bare, capture_output=True, text=True, timeout=40)
    assert (done.returncode, done.stderr) == (0, "")
    assert "a scripted model: its texts are fixed" in done.stdout
    assert "→ mcp__demo__table(rows=20000)\n→ mcp__demo__picture(size=32)\n" in done.stdout
    assert "There are 20000 deployments. 20 of them took exactly 999 seconds." in done.stdout
    assert "? Write needs permission: no rule allows it\n  yes (the demonstration answers" in done.stdout
    assert "✓ Created " in done.stdout
    assert "\x1b" not in done.stdout
    assert list((home / ".dragoman").rglob("*")) == [], "nothing is kept"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "end"), [(b"y", "It is in report.md"), (b"n", "As you wish: I did not write it")]
)
def test_in_a_terminal_the_person_is_asked_by_the_scripted_model(key: bytes, end: str) -> None:
    with Terminal("demo", "--agent") as terminal:
        terminal.answer(key)
        output = plain(terminal.finish())
    assert terminal.process.returncode == 0
    assert "Write" in output
    assert end in output
