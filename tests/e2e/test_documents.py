"""What the documents promise is so."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from tests.e2e.command import ROOT
from tests.e2e.forked import run

DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("**/*.md"))]
README = (ROOT / "README.md").read_text()


def commands_in(text: str) -> set[str]:
    """Lines after a prompt, and code spans, that begin with the command."""
    found = re.findall(r"^\s*\$ (dragoman .*)$", text, re.MULTILINE) + re.findall(
        r"`(dragoman [^`\n]+)`", text
    )
    return {command for command in found if not re.search(r"[…|]", command)}


EVERY_COMMAND = sorted(set().union(*(commands_in(document.read_text()) for document in DOCUMENTS)))


def test_the_quickstart_runs() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "quickstart.py"], capture_output=True, text=True, timeout=40
    )
    assert done.returncode == 0, done.stderr
    assert "mcp__demo__add" in done.stdout
    assert "42 {'sum': 42}" in done.stdout


def test_the_readme_contains_the_quickstart_unchanged() -> None:
    (shown,) = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    title, _, program = (ROOT / "examples" / "quickstart.py").read_text().partition("\n\n")
    assert re.fullmatch(r'""".*"""', title)
    assert shown == program


def test_nothing_advises_to_install_a_package_of_this_name_from_an_index() -> None:
    """Nothing is published: there the name may belong to others."""
    texts = [*DOCUMENTS, *sorted((ROOT / "src").glob("**/*.py"))]
    assert [str(path) for path in texts if "dragoman[" in path.read_text(encoding="utf-8")] == []


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) < 150


def test_scripts_and_links_in_the_readme_exist() -> None:
    for script in re.findall(r"^\$ (scripts/\S+)", README, re.MULTILINE):
        assert os.access(ROOT / script, os.X_OK), script
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_there_are_commands_in_the_documents() -> None:
    assert len(EVERY_COMMAND) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("line", EVERY_COMMAND)
def test_every_command_in_the_documents_is_valid(line: str) -> None:
    _, *words = shlex.split(line, comments=True)
    done = run(*words, "--help")
    assert done.returncode == 0, done.stderr
