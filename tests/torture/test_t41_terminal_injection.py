"""T41: No control byte from any server reaches the terminal.

Every command shows a server that puts screen, title, clipboard and hyperlink sequences, C1 bytes,
carriage returns, bells and ten thousand combining marks into all its text. The same command without
sanitizing must fail the same check."""

import itertools
import json
import re
import shlex
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import config, entry, plain
from tests.e2e.forked import Terminal, run
from tests.e2e.person import Person, offering, settings, tool
from tests.e2e.server import EVIL, WORSE
from tests.servers import stdio_server

pytestmark = [pytest.mark.slow, pytest.mark.requirement("CAT-2")]

HOSTILE = ("--mcp-config", config(e2e=entry("serves", "worse")))
MARKS_IN_A_ROW = 4

# Before anything else is imported: every module imports these names from here.
UNSANITIZED = """
import dragoman.cleaning as cleaning
for name in ("visible", "one_line", "for_model"):
    setattr(cleaning, name, lambda text, limit=None: text)
cleaning.is_safe = lambda text: True
from dragoman.cli.main import main
main()
"""


class Unsanitized(Terminal):
    """The same command, with unsanitized text of servers."""

    def __init__(self, *words: str) -> None:
        super().__init__(*words)
        self._words = [sys.executable, "-c", UNSANITIZED, *words]


def harm_in(output: str) -> set[str]:
    """Everything in the text that moves a cursor, colours, hides, reorders or combines characters."""
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


def assert_sanitized(*words: str) -> None:
    """Both at the same time, because most of their time is the start."""
    with Terminal(*words) as cleaned, Unsanitized(*words) as uncleaned:
        output = cleaned.finish()
        assert harm_in(output) == set()
        assert "\\x1b" in output or "\\u001b" in output or words[0] in SANITIZED_FOR_MODELS
        # rich drops the bell of text that it repaints, and nothing else.
        assert harm_in(uncleaned.finish()) >= {"0x1b"}, "the check would not notice"


SANITIZED_FOR_MODELS = ("resources", "read", "prompts", "prompt")
"""Text that these commands list is also read by a model, so invisible text is removed instead of shown."""


def test_t41_the_check_detects_every_kind_of_control_character():
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
def test_t41_no_text_of_a_server_contains_terminal_control_sequences(words: tuple[str, ...]):
    assert_sanitized(*words, *HOSTILE)


@pytest.mark.parametrize("mode", ["dies", "greets", "refuses"])
def test_t41_reasons_and_stderr_of_a_failed_server_are_sanitized(mode: str):
    given = ("--mcp-config", config(e2e=entry(mode, "worse")))
    assert_sanitized("resources", *given)


def test_t41_the_difference_between_two_definitions_is_sanitized():
    run("tools", "lock", "--mcp-config", config(e2e=entry("serves")))
    assert_sanitized("tools", "lock", "--check", *HOSTILE)


@pytest.mark.parametrize(
    "words",
    [("tools", "show", "described"), ("resources",), ("read", "e2e", "e2e://evil")],
    ids=" ".join,
)
def test_t41_json_output_is_plain_ascii_and_loses_nothing(words: tuple[str, ...]):
    output = shown(*words, *HOSTILE, "--json")
    assert re.fullmatch("[ -~\n]*", output), "not even a style"
    document = json.loads(output)
    if words[0] == "read":
        assert document["contents"][0]["text"] == WORSE
    elif words == ("tools", "show", "described"):
        assert document["title"] == WORSE


# --- questions, rules and logs ---


class UncleanedPerson(Person):
    """The same for a command in a terminal, with unsanitized text of servers."""

    def __init__(self, *words: str, **options: Any) -> None:
        super().__init__(*words, **options)
        self._words = [sys.executable, "-c", UNSANITIZED, *words]


Talk = Callable[[Person], object]


def assert_sanitized_dialogue(talk: Talk, *words: str, harm: str = "0x9b", is_shown: bool = True) -> None:
    """The dialogue with the command, and the same without sanitizing.

    `is_shown`: whether the removed text must be visible; text that is also read by a model is only
    removed.
    """
    for kind in (Person, UncleanedPerson):
        with kind(*words) as person:
            talk(person)
            output = person.finish()
        if kind is Person:
            assert harm_in(output) == set()
            assert "\\x9b" in output or "\\u009b" in output or not is_shown
        else:
            assert harm in harm_in(output), "the check would not notice"


def says_no(keys: str) -> Talk:
    return lambda person: person.answers(keys, "n")


@pytest.mark.requirement("PRM-3")
def test_t41_the_permission_question_about_a_call_is_sanitized():
    given = json.dumps({EVIL: EVIL, "b": [{EVIL: EVIL}], "c": "x" * 1000 + EVIL})

    def look_twice(person: Person) -> None:
        person.answers("y/a/p/n/v", "v")
        person.answers("y/a/p/n/v", "n")

    assert_sanitized_dialogue(look_twice, "call", "mcp__e2e__annotated", given, *HOSTILE, harm="0x1b")


@pytest.mark.requirement("PRM-3")
def test_t41_the_name_of_the_working_folder_in_a_question_is_sanitized(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = home / "work" / EVIL.replace("\0", "").replace("/", "")
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / ".mcp.json").write_text("{}")
    burn = offering(tool("burn", destructiveHint=True))

    assert_sanitized_dialogue(says_no("y/a/p/n"), "call", "mcp__s__burn", *burn)


@pytest.mark.parametrize("decision", ["ask", "deny", "broken"])
@pytest.mark.requirement("PRM-5")
def test_t41_the_reason_of_a_hook_is_sanitized(home: Path, decision: str):
    said = {"permissionDecision": decision, "permissionDecisionReason": EVIL}
    output = json.dumps(
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", **said}, "systemMessage": EVIL}
    )
    file = home / "said"
    file.write_text(output if decision != "broken" else EVIL)
    more = "" if decision != "broken" else " >&2; exit 1"
    hook = {"type": "command", "command": f"cat {shlex.quote(str(file))}{more}"}
    own = home / ".dragoman" / "settings.json"
    own.parent.mkdir()
    own.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}))

    talk = says_no("y/n") if decision == "ask" else lambda person: None
    assert_sanitized_dialogue(talk, "call", "mcp__s__plain", *offering(tool("plain")), is_shown=False)


@pytest.mark.requirement("PRM-6")
@pytest.mark.parametrize(
    "words", [("list",), ("explain", "mcp__s__plain"), ("test", "mcp__s__plain")], ids=" ".join
)
def test_t41_rules_of_a_project_are_sanitized(home: Path, words: tuple[str, ...]):
    rules = [f"mcp__s__*(a!={EVIL})", f"mcp__*{EVIL}*(", f"mcp__s({EVIL}"]
    settings(home, scope="local", deny=rules, allow=[f"mcp__s__{EVIL}"], defaultMode=EVIL)
    given = offering(tool("plain")) if words != ("list",) else ()

    assert_sanitized_dialogue(lambda person: None, "permissions", *words, *given)


@pytest.mark.requirement("PRM-6")
@pytest.mark.parametrize("words", [("logs",), ("logs", "--audit", "-n", "5")], ids=" ".join)
def test_t41_the_audit_log_is_sanitized(home: Path, words: tuple[str, ...]):
    log = home / ".dragoman" / "logs" / "audit.jsonl"
    log.parent.mkdir(parents=True)
    fields = ("time", "tool", "decision", "by", "reason", "outcome", "duration_ms")
    log.write_text(json.dumps({"arguments": [EVIL], **dict.fromkeys(fields, EVIL)}) + "\n")

    assert_sanitized_dialogue(lambda person: None, *words)


def test_t41_the_audit_log_as_json_is_sanitized(home: Path):
    name = EVIL.replace("\0", "")
    run("call", f"mcp__e2e__{name}", json.dumps({EVIL: 1}), "--mcp-config", config(e2e=entry("serves")))
    output = shown("logs", "--json")

    assert re.fullmatch("[ -~\n]+", output)
    assert "\\x1b" in json.loads(output)["tool"]


def test_t41_the_question_about_a_url_is_sanitized():
    page = {"url": "https://pay.example/a?b=c", "message": WORSE}
    given = ("--mcp-config", config(shop=stdio_server("wants_a_page.py", json.dumps([page]), "1")))

    assert_sanitized_dialogue(says_no("y/n/c"), "call", "mcp__shop__buy", *given, harm="0x1b")
