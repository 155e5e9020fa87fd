"""T405: a script that opens pages finds no program in a repository, also if PATH has a relative folder."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman.browser import open_page

pytestmark = pytest.mark.requirement("CFG-8")


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_t405_only_absolute_folders_of_path_are_searched(home: Path, monkeypatch: pytest.MonkeyPatch):
    ran, work, programs = home / "ran", home / "work", home / "programs"
    write_program(programs / "xdg-open", f'helper; ./helper; echo "opened $1" >> {ran}')
    write_program(programs / "helper", f"echo installed >> {ran}")
    for folder in ("node_modules/.bin", "."):
        write_program(work / folder / "helper", f"echo of the repository >> {ran}")
    monkeypatch.chdir(work)
    path = ["node_modules/.bin", ".", "", str(programs), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    monkeypatch.setenv("DISPLAY", ":0")
    for name in ("BROWSER", "SSH_CONNECTION", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
    start: Any = subprocess.Popen
    started: list[subprocess.Popen[bytes]] = []

    def starting(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(start(*words, **options))
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", starting)
    assert open_page("https://example.com/")
    assert started[0].wait(10) == 0
    assert ran.read_text() == "installed\nopened https://example.com/\n"
