"""T41: no control byte from any server reaches the terminal of the person who looks at it.

Every command looks at a server that puts screen, title, clipboard and link sequences, C1 bytes, carriage
returns, bells and ten thousand combining marks into everything it says. The same command with cleaning
switched off must fail the same check: otherwise it would prove nothing.
"""

import itertools
import json
import re
import sys
import unicodedata
from collections.abc import Iterator

import pytest

from tests.e2e.command import Terminal, config, entry, plain, run
from tests.e2e.server import WORSE

pytestmark = [pytest.mark.slow, pytest.mark.requirement("CAT-2")]

HOSTILE = ("--mcp-config", config(e2e=entry("serves", "worse")))
MARKS_IN_A_ROW = 4

# Before anything else is imported: every module takes these names from here.
UNCLEANED = """
import dragoman.cleaning as cleaning
for name in ("visible", "one_line", "for_model"):
    setattr(cleaning, name, lambda text, limit=None: text)
cleaning.is_safe = lambda text: True
from dragoman.cli.main import main
main()
"""


class Uncleaned(Terminal):
    """The same command, which shows what servers say as they said it."""

    def __init__(self, *words: str) -> None:
        super().__init__(*words)
        self._words = [sys.executable, "-c", UNCLEANED, *words]


def harm_in(output: str) -> set[str]:
    """What in it moves a cursor, colours, hides, turns around or piles up."""
    text = plain(output)
    harm = {hex(ord(char)) for char in text if char != "\n" and _is_control(char)}
    harm |= {"a tower of marks" for height in _runs_of_marks(text) if height > MARKS_IN_A_ROW}
    return harm


def _is_control(char: str) -> bool:
    return unicodedata.category(char)[0] == "C" or unicodedata.category(char) in ("Zl", "Zp")


def _runs_of_marks(text: str) -> Iterator[int]:
    groups = itertools.groupby(text, lambda char: unicodedata.category(char) in ("Mn", "Me"))
    return (sum(1 for _ in group) for is_mark, group in groups if is_mark)


def shown(*words: str) -> str:
    with Terminal(*words) as terminal:
        return terminal.finish()


def assert_made_harmless(*words: str) -> None:
    """Both at once, since most of their time is starting."""
    with Terminal(*words) as cleaned, Uncleaned(*words) as uncleaned:
        output = cleaned.finish()
        assert harm_in(output) == set()
        assert "\\x1b" in output or "\\u001b" in output or words[0] in CLEANED_FOR_MODELS
        assert harm_in(uncleaned.finish()) >= {"0x1b", "0x7"}, "the check would not notice"


CLEANED_FOR_MODELS = ("resources", "read", "prompts", "prompt")
"""What is listed there is a model's too, so what nobody should see is taken out instead of shown."""


def test_t41_the_check_knows_every_kind_of_harm():
    kinds = {
        "0x0",
        "0x7",
        "0x8",
        "0xd",
        "0xe",
        "0x1b",
        "0x7f",
        "0x85",
        "0x90",
        "0x9b",
        "0x9d",
        "0x202e",
        "0x200b",
    }
    assert harm_in(WORSE) >= {*kinds, "0xe0041", "0x2028", "a tower of marks"}


LOOKS = {
    "tools with schemas": ("tools", "--schema", "--cost"),
    "a tool with texts": ("tools", "show", "described"),
    "a tool with annotations": ("tools", "show", "annotated"),
    "resources": ("resources",),
    "a resource": ("read", "e2e", "e2e://evil"),
    "no such resource": ("read", "e2e", "e2e://nowhere"),
    "values for a gap": ("read", "e2e", "e2e://evil/{gap}", "--complete", "gap="),
    "prompts": ("prompts", "--arguments"),
    "a prompt": ("prompt", "evil", "x"),
    "a result": ("call", "mcp__e2e__text"),
    "odd content": ("call", "mcp__e2e__odd"),
    "an answered error": ("call", "mcp__e2e__error"),
    "progress and logs": ("call", "mcp__e2e__progress"),
}


@pytest.mark.parametrize("words", LOOKS.values(), ids=LOOKS.keys())
def test_t41_nothing_a_server_says_drives_the_terminal(words: tuple[str, ...]):
    assert_made_harmless(*words, *HOSTILE)


@pytest.mark.parametrize("mode", ["dies", "greets", "refuses"])
def test_t41_nor_do_reasons_and_last_words_of_one_that_fails(mode: str):
    given = ("--mcp-config", config(e2e=entry(mode, "worse")))
    assert_made_harmless("resources", *given)


def test_t41_nor_does_the_difference_between_two_definitions():
    run("tools", "lock", "--mcp-config", config(e2e=entry("serves")))
    assert_made_harmless("tools", "lock", "--check", *HOSTILE)


@pytest.mark.parametrize(
    "words",
    [("tools", "show", "described"), ("resources",), ("read", "e2e", "e2e://evil")],
    ids=" ".join,
)
def test_t41_as_json_everything_is_plain_ascii_and_nothing_is_lost(words: tuple[str, ...]):
    output = shown(*words, *HOSTILE, "--json")
    assert re.fullmatch("[ -~\n]*", output), "not even a style"
    document = json.loads(output)
    if words[0] == "read":
        assert document["contents"][0]["text"] == WORSE
    elif words == ("tools", "show", "described"):
        assert document["title"] == WORSE
