"""Nothing a server says can drive the terminal of the person who looks at it (R11)."""

import json
import unicodedata

import pytest

from tests.e2e.command import config, entry, plain
from tests.e2e.forked import in_terminal
from tests.e2e.server import EVIL

pytestmark = pytest.mark.slow

HOSTILE = config(e2e=entry("serves"))
TOOLS = ("text", "error", "fail", "odd", "structured", "progress", "echo")


def assert_harmless(output: str) -> None:
    left = {hex(ord(char)) for char in plain(output) if char != "\n" and unicodedata.category(char)[0] == "C"}
    left |= {hex(ord(char)) for char in plain(output) if unicodedata.category(char) in ("Zl", "Zp")}
    assert not left, f"{left} reached the terminal in {output!r}"
    assert "\\x1b" in output or "\\u001b" in output, "what was there is made visible, not hidden"


def test_a_list_of_tools_with_hostile_names_and_descriptions() -> None:
    code, output = in_terminal("tools", "--mcp-config", HOSTILE)
    assert code == 0
    assert "left out" in output, "the definition that cannot be used is named"
    assert_harmless(output)


@pytest.mark.parametrize("tool", TOOLS[:-1])
def test_results_errors_and_progress(tool: str) -> None:
    code, output = in_terminal("call", f"mcp__e2e__{tool}", "--mcp-config", HOSTILE)
    assert code == (1 if tool in ("error", "fail") else 0)
    assert_harmless(output)


def test_errors_about_typed_words() -> None:
    for words in (
        ("call", EVIL.replace("\0", "")),
        ("call", "mcp__e2e__echo", f"word{EVIL}".replace("\0", "")),
    ):
        _, output = in_terminal(*words, "--mcp-config", HOSTILE)
        assert_harmless(output)
    _, output = in_terminal("call", "mcp__e2e__echo", json.dumps({"count": EVIL}), "--mcp-config", HOSTILE)
    assert "count" in output
    assert_harmless(output)


@pytest.mark.parametrize("mode", ["dies", "greets", "refuses"])
def test_reasons_and_last_output_of_failed_servers(mode: str) -> None:
    code, output = in_terminal("tools", "--mcp-config", config(e2e=entry(mode)))
    assert code == 4
    assert "last words" in output
    assert_harmless(output)


def test_names_in_an_untrusted_configuration() -> None:
    for broken in (
        {"command": EVIL.replace("\0", "")},
        {"command": EVIL},
        {"type": EVIL, "url": "x"},
        {"args": []},
    ):
        _, output = in_terminal("tools", "--mcp-config", config(**{EVIL: broken}))
        assert_harmless(output)
    whole = config(**{EVIL: {**entry("serves"), EVIL: 1}})
    for words in (("tools",), ("tools", "--server", "other")):
        _, output = in_terminal(*words, "--mcp-config", whole)
        assert_harmless(output)


@pytest.mark.parametrize("words", [("tools",), *(("call", f"mcp__e2e__{tool}") for tool in TOOLS)])
def test_json_output_is_printable_and_complete(words: tuple[str, ...]) -> None:
    _, output = in_terminal(*words, "--mcp-config", HOSTILE, "--json")
    progress, _, document = plain(output).partition("{\n")
    assert bool(progress) == (words[-1] == "mcp__e2e__progress"), "only the bar, which goes to stderr"
    document = "{" + document
    assert all(" " <= char <= "~" or char == "\n" for char in document), ascii(document)
    value = json.loads(document)
    if words[0] == "tools":
        assert EVIL in [tool["tool"] for tool in value["tools"]]
    elif words[1].endswith("text"):
        assert value["text"] == EVIL
