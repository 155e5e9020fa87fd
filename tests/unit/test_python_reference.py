"""The Python reference is made from the code, is current, and leaves nothing without a word."""

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def run(code: str) -> str:
    """In a process of its own: the generator is no part of the package."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=DOCS, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


@pytest.mark.slow  # scripts/check looks at it too
def test_the_page_is_current():
    assert (
        run("import python_reference; print(python_reference.page(), end='')")
        == (DOCS / "reference-python.md").read_text()
    )


def test_everything_on_the_page_is_documented():
    assert run("import python_reference; print(*python_reference.undocumented())") == "\n"


def test_the_page_has_events_hooks_answers_outcomes_resources_and_prompts():
    lines = (DOCS / "reference-python.md").read_text().splitlines()
    named = {line.split("`")[1].rpartition(".")[2] for line in lines if line.startswith("### ")}

    assert {"CallProgressed", "hook", "PermissionAnswer", "FormAnswer", "CallOutcome"} <= named
    assert {"Resources", "ResourceTemplate", "Prompts", "PromptResult", "Host", "Toolbox"} <= named
    assert "| `call_id` | `str` | `''` |" in "\n".join(lines), "fields of bases, too"
