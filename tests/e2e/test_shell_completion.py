"""Shell completion: what a shell asks the installed command, and what it is told."""

import os
import subprocess

import pytest

from tests.e2e.command import DRAGOMAN

pytestmark = pytest.mark.slow


def ask(instruction: str, *words: str) -> str:
    """What the command answers a shell; the last word is the one being typed."""
    environ = {
        **os.environ,
        "_DRAGOMAN_COMPLETE": instruction,
        "COMP_WORDS": " ".join(("dragoman", *words)),
        "COMP_CWORD": str(len(words)),
    }
    return subprocess.run(
        [DRAGOMAN], env=environ, capture_output=True, text=True, timeout=40, check=False
    ).stdout


def completed(*words: str) -> set[str]:
    return {line.partition(",")[2] for line in ask("bash_complete", *words).splitlines()}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str) -> None:
    script = ask(f"{shell}_source")
    assert "_DRAGOMAN_COMPLETE" in script
    assert f"{shell}_complete" in script


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("mc",), {"mcp"}),
        (("mcp", "re"), {"reconnect", "remove", "reset-project-choices"}),
        (("mcp", "import", "c"), {"claude-code", "claude-desktop", "cursor", "codex"}),
        (("mcp", "add", "--sc"), {"--scope"}),
        (("mcp", "add", "--scope", ""), {"local", "user", "project"}),
        (("config", "schema", "m"), {"managed"}),
    ],
)
def test_words_are_completed(words: tuple[str, ...], expected: set[str]) -> None:
    assert completed(*words) == expected
