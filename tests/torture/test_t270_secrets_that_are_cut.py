"""T270: text of a server is cut where it is too long; the remaining part of a secret there is redacted as
well."""

import sys
from pathlib import Path

import pytest

from dragoman.cleaning import cut, one_line
from dragoman.content.redact import HIDDEN, Redactor
from tests.e2e import forked
from tests.torture.projects import user

pytestmark = pytest.mark.requirement("AUT-11")

SECRET = "sk-live-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdef"
PRINTED_BY = {
    "noise on stdout": "print('x' * 160 + s + ' was read', flush=True)",
    "the end of stderr": "e.write('y' * 500 + s + 'z' * 4070 + '\\n')",
    "a long line of stderr": "e.write((s + ' ') * 400 + '\\n')",
    "a line in pieces": "e.write(s + ' ' + 'a' * 4030 + s); e.flush(); time.sleep(0.1); e.write(' more\\n')",
}


def halves(text: str) -> list[str]:
    """The parts of the secret that a text still contains."""
    return [part for at in range(len(SECRET) - 11) if (part := SECRET[at : at + 12]) in text]


@pytest.mark.parametrize("how", PRINTED_BY)
@pytest.mark.parametrize(
    "words", [("call", "mcp__near__x"), ("call", "mcp__near__x", "--json"), ("logs", "near")]
)
def test_t270_no_command_prints_a_part_of_a_secret(home: Path, how: str, words: tuple[str, ...]):
    script = f"import os, sys, time; e, s = sys.stderr, os.environ['TOKEN']; {PRINTED_BY[how]}; sys.exit(1)"
    entry = {"command": sys.executable, "args": ["-c", script], "env": {"TOKEN": SECRET}}
    user(home, {"mcpServers": {"near": entry}})
    forked.run("call", "mcp__near__x")
    ended = forked.run(*words)
    output = ended.stdout + ended.stderr

    assert HIDDEN in output or "…" in output
    assert halves(output) == []


@pytest.mark.parametrize("limit", range(8, len(SECRET) + 1))
def test_t270_the_beginning_of_a_secret_is_redacted_at_the_end_of_a_cut_text(limit: int):
    said = one_line(SECRET + " and more", limit)
    assert Redactor([SECRET]).text(said).startswith(f"{HIDDEN}… [")


@pytest.mark.parametrize("length", range(8, len(SECRET)))
def test_t270_the_end_of_a_secret_is_redacted_at_the_beginning_of_a_cut_text(length: int):
    assert Redactor([SECRET]).text(f"…{SECRET[-length:]}!") == f"…{HIDDEN}!"


def test_t270_parts_of_other_spellings_are_redacted():
    assert Redactor([SECRET]).text(cut(SECRET.encode().hex(), 40)).startswith(f"{HIDDEN}…")


def test_t270_a_text_that_is_not_cut_at_a_secret_is_unchanged():
    text = "See sk-live-ABCDEFG, … and 456789abcdef."
    assert Redactor([SECRET]).text(text) == text
