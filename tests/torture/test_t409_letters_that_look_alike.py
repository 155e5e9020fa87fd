"""T409: a prohibition of a name matches every letter that looks like one of its letters."""

import sys
from pathlib import Path

import pytest

from dragoman.cleaning import fold
from dragoman.config.schema import PermissionRules
from dragoman.permissions.decide import decide
from dragoman.permissions.rules import Call, Rulebook
from tests.torture import projects

pytestmark = pytest.mark.requirement("PRM-1")
LOOK_ALIKES = {
    "c": "\u0441\u0421\u03f2\u03f9\u1d04",
    "j": "\u0458\u0408\u03f3\u037f",
    "w": "\u051d\u0461\u0460",
    "y": "\u0443\u04af\u04ae",
    "a": "\u0430\u0410",
    "e": "\u0435\u0415",
    "i": "\u0456\u0406",
    "k": "\u043a\u041a",
    "o": "\u043e\u041e",
    "p": "\u0440\u0420",
    "s": "\u0455\u0405",
    "x": "\u0445\u0425",
    "d": "\u0501",
    "h": "\u04bb",
    "q": "\u051b",
}


@pytest.mark.parametrize("letter", sorted(LOOK_ALIKES))
def test_t409_lookalike_letters_are_normalised_to_the_same_letter(letter: str):
    assert {other: fold(other) for other in LOOK_ALIKES[letter]} == dict.fromkeys(LOOK_ALIKES[letter], letter)


@pytest.mark.parametrize("name", ["do\u0441s", "DO\u0421S", "do\u03f2s"])
def test_t409_a_rule_matches_a_name_of_lookalike_letters(home: Path, name: str):
    book = Rulebook.of([("user", "settings.json", PermissionRules(deny=("mcp__docs",)))])
    call = Call(tool="mcp__do_s__read", server=name, wire_name="read")
    assert decide(call, book.about(call), "bypassPermissions").behaviour == "deny"
    entry = {"command": sys.executable}
    projects.user(home, {"mcpServers": {name: entry}, "deniedMcpServers": [{"serverName": "docs"}]})
    assert projects.eligibilities(home) == {name: "refused"}
