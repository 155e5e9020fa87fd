"""T341: programs that Dragoman runs by itself are not taken from a repository, also if PATH has a relative
folder such as node_modules/.bin."""

import os
from pathlib import Path

import pytest

from dragoman.browser import opener
from tests.unit.agent.test_builtin import benched

pytestmark = pytest.mark.requirement("CFG-8")


@pytest.fixture
def mark(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    mark, work = home / "ran", home / "work"
    for relative in ("node_modules/.bin", "."):
        (work / relative).mkdir(parents=True, exist_ok=True)
        for name in ("rg", "grep", "head", "bash", "xdg-open", "my-browser"):
            program = work / relative / name
            program.write_text(f"#!/bin/sh\necho {name} >> {mark}\n")
            program.chmod(0o755)
    (work / "a.txt").write_text("hello\n")
    monkeypatch.chdir(work)
    monkeypatch.setenv("PATH", os.pathsep.join(("node_modules/.bin", ".", "", os.environ["PATH"])))
    return mark


async def test_t341_a_search_without_a_question_runs_no_program_of_the_repository(home: Path, mark: Path):
    async with benched((home / "work").resolve()) as bench:
        assert "a.txt:1:hello" in await bench.text("Grep", pattern="hello")
        assert await bench.text("Bash", command="echo $BASH") != ""
    assert not mark.exists()


@pytest.mark.parametrize("more", [{}, {"BROWSER": "my-browser"}])
@pytest.mark.usefixtures("mark")
def test_t341_a_page_is_never_opened_with_a_relative_program(more: dict[str, str]):
    found = opener({"DISPLAY": ":0", "PATH": os.environ["PATH"], **more})
    assert found is None or os.path.isabs(found[0])
