"""The guides are true: their files are written and their commands run, in order, in one home each.

A block `json PATH` is written to that path. In a `console` block each `$ ` line is run, by a shell if it
needs one; the lines below it must be found, in this order, in what it prints (`…` stands for anything).
A `python` block is run.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e import forked
from tests.e2e.command import ROOT

NEED_A_MODEL = {"agent-files", "agent-terminal", "models", "scripting"}
"""`test_agent_files.py`, `test_terminal_app.py` and `test_print_mode.py` run what they describe."""
NEED_A_GATEWAY = {"scaling"}
"""Its commands do not end; tests/interop runs what it describes."""
GUIDES = sorted(
    guide
    for guide in (ROOT / "docs" / "guides").glob("*.md")
    if guide.stem not in NEED_A_MODEL | NEED_A_GATEWAY
)
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NEEDS_A_SHELL = re.compile(r"[|&;<>$`*?~!#\\\n]")


def test_there_are_guides():
    assert {guide.stem for guide in GUIDES} >= {"configuration", "for-administrators"}


@pytest.mark.slow
@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_the_examples_of_a_guide_run(guide: Path, home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    ran = 0
    for language, path, body in BLOCK.findall(guide.read_text()):
        if language == "json" and path:
            target = Path(os.path.expandvars(os.path.expanduser(path)))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(body)
        elif language == "console":
            ran += run_console(body)
        elif language == "python":
            program(body)
    assert ran >= 5


def run_console(body: str) -> int:
    steps = re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]
    for step in steps:
        line, _, expected = step.partition("\n")
        done = run_line(line)
        printed = done.stdout + done.stderr
        assert done.returncode == 0, f"$ {line}\n{printed}"
        pattern = ".*".join(
            ".*".join(re.escape(part) for part in text.rstrip().split("…")) for text in expected.splitlines()
        )
        assert re.search(pattern, printed, re.DOTALL), f"$ {line}\nexpected:\n{expected}\nprinted:\n{printed}"
    return len(steps)


def run_line(line: str) -> subprocess.CompletedProcess[str]:
    program, *words = shlex.split(line)
    if program == "dragoman" and not NEEDS_A_SHELL.search(re.sub("'[^']*'", "", line)):
        return forked.run(*words)
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, timeout=40, stdin=subprocess.DEVNULL
    )


def program(body: str) -> None:
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True, timeout=40)
    assert done.returncode == 0, done.stderr
