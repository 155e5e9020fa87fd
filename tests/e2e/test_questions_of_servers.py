"""`dragoman call` and questions of servers: forms and pages at the terminal, and without one."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import exit_codes
from tests.e2e.command import config
from tests.e2e.forked import run
from tests.e2e.person import Person
from tests.servers import stdio_server

pytestmark = pytest.mark.slow

FORM = {
    "message": "Where to? \x1b[2J",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Your name", "minLength": 2},
            "mail": {"type": "string", "format": "email", "description": "For the receipt."},
            "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
            "colour": {
                "type": "string",
                "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}],
            },
            "extras": {"type": "array", "items": {"enum": ["tea", "bread"]}, "default": ["tea"]},
            "gift": {"type": "boolean"},
        },
        "required": ["name", "colour"],
    },
}
KEYS = "y/e/n/c"
PAGE = {"mode": "url", "elicitationId": "e1", "url": "https://xn--80ak6aa92e.example/pay", "message": "Pay"}


def words(revision: str, method: str, params: dict[str, Any], **more: Any) -> list[str]:
    """The words of a command that has the server ask."""
    asked = {"method": method, "params": params, **more}
    if revision == "2026-07-28":
        asked["in_round"] = True
    server = config(s=stdio_server("asks_during_calls.py", protocol=revision))
    return ["call", "mcp__s__ask", json.dumps(asked), "--mcp-config", server]


def answer_in(shown: str) -> dict[str, Any]:
    return json.loads(shown[shown.rindex("\n{") if "\n{" in shown else shown.index("{") :])["result"]


@pytest.mark.requirement("ASK-1")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_form_is_completed_by_field_and_sent_after_a_review(home: Path, revision: str):
    with Person(*words(revision, "elicitation/create", FORM)) as person:
        head = person.sees("Your name (required): ")
        assert "? s asks for information" in head
        assert "during mcp__s__ask" in head
        assert 'message: "Where to? \\x1b[2J"' in head
        person.type(b"x\n")
        person.sees("! Your name must have at least 2 characters")
        person.type(b"Ada\n")
        person.sees('"For the receipt."')
        person.sees("mail (an e-mail address): ")
        person.type(b"nobody\n")
        person.sees("! mail must be an e-mail address")
        person.type(b"\n")
        person.sees("count (a whole number) [3]: ")
        person.type(b"12\n")
        person.sees("! count must be at most 9")
        person.type(b"\n")
        person.sees("2  Blue")
        person.type(b"\n")
        person.sees("! colour is required")
        person.type(b"blue\n")
        person.sees("! colour must be one of the list")
        person.type(b"2\n")
        person.sees("[tea]: ")
        person.type(b"tea, 2\n")
        person.sees("gift (yes or no): ")
        person.type(b"\n")
        shown = person.answers(KEYS, "y")
        assert "mail       (left out)" in shown
        assert "colour     b (Blue)" in shown
        assert "extras     tea, bread" in shown
        code, rest = person.ends()

    assert code == exit_codes.OK
    content = {"name": "Ada", "count": 3, "colour": "b", "extras": ["tea", "bread"]}
    assert answer_in(rest) == {"action": "accept", "content": content}


@pytest.mark.requirement("ASK-1")
def test_with_a_screen_a_form_is_completed_there(home: Path):
    """Keys for each kind of field: `tests/unit/tui`."""
    properties = {name: FORM["requestedSchema"]["properties"][name] for name in ("name", "count")}
    form = {"message": "Who?", "requestedSchema": {"type": "object", "properties": properties}}
    with Person(*words("2025-11-25", "elicitation/create", form), env={"DRAGOMAN_PLAIN": ""}) as person:
        person.sees("Leave")  # the last line of the screen
        person.type(b"Ada")
        person.sees("Ada")
        person.type(b"\x13")  # Ctrl-S
        code, rest = person.ends()
        assert person.is_as_before

    assert code == exit_codes.OK
    assert answer_in(rest) == {"action": "accept", "content": {"name": "Ada", "count": 3}}


@pytest.mark.requirement("ASK-1")
def test_ctrl_c_at_a_form_on_the_screen_interrupts_the_command(home: Path):
    with Person(*words("2025-11-25", "elicitation/create", FORM), env={"DRAGOMAN_PLAIN": ""}) as person:
        person.sees("Leave")
        person.type(b"\x03")
        code, _ = person.ends()
        assert person.is_as_before
    assert code == exit_codes.INTERRUPTED


SCREEN = {"DRAGOMAN_PLAIN": ""}
ERASED = "\x1b[J"
"""Everything below the cursor is erased, and with it the screen."""


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize(
    ("more", "code", "last"),
    [
        ({}, exit_codes.OK, "went on"),
        ({"dies": True}, exit_codes.NOT_CONNECTED, "the connection to s was lost"),
    ],
    ids=["cancelled by the server", "the server is gone"],
)
def test_a_form_on_the_screen_disappears_when_it_is_not_needed_any_more(
    home: Path, more: dict[str, Any], code: int, last: str
):
    until = home / "now"
    asking = words("2025-11-25", "elicitation/create", FORM, until=str(until), **more)
    with Person(*asking, env=SCREEN) as person:
        person.sees("Leave")
        until.touch()
        person.sees(ERASED)
        left = person.sees(last)
        ended, rest = person.ends()
        assert person.is_as_before
    assert ended == code, rest
    assert "This question is no longer needed." in left
    assert "Your name" not in left + rest, "the form is not printed once more"


@pytest.mark.requirement("ASK-3")
def test_a_form_on_the_screen_disappears_when_the_time_of_its_call_is_over(home: Path):
    asking = words("2025-11-25", "elicitation/create", FORM, until=str(home / "never"))
    with Person(*asking, "--timeout", "4", env=SCREEN) as person:
        person.sees("Leave")
        person.sees(ERASED)
        code, rest = person.ends()
        assert person.is_as_before
    assert code == exit_codes.TIMEOUT, rest
    assert "This question is no longer needed." in rest
    assert "Your name" not in rest


@pytest.mark.requirement("ASK-1")
def test_keys_typed_in_one_burst_are_handled_in_order(home: Path):
    fields = FORM["requestedSchema"]["properties"]
    properties = {name: fields[name] for name in ("colour", "name", "gift", "count")}
    form = {"message": "", "requestedSchema": {"type": "object", "properties": properties}}
    with Person(*words("2025-11-25", "elicitation/create", form), env=SCREEN) as person:
        person.sees("Leave")
        down = b"\x1b[B"
        person.type(down + b" \tAda\t \t\x7f7\x13")  # the last one is Ctrl-S
        code, rest = person.ends()
    assert code == exit_codes.OK
    content = {"colour": "b", "name": "Ada", "gift": True, "count": 7}
    assert answer_in(rest) == {"action": "accept", "content": content}


@pytest.mark.requirement("ASK-1")
@pytest.mark.parametrize(("key", "action"), [("n", "decline"), ("c", "cancel"), (b"\x04", "cancel")])
def test_a_form_can_be_declined_and_left(home: Path, key: str | bytes, action: str):
    form = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}
    with Person(*words("2025-11-25", "elicitation/create", form)) as person:
        person.answers("y/n/c", key)
        code, rest = person.ends()
        assert person.is_as_before

    assert (code, answer_in(rest)) == (exit_codes.OK, {"action": action})


def test_the_end_of_input_leaves_a_form(home: Path):
    with Person(*words("2025-11-25", "elicitation/create", FORM)) as person:
        person.sees("Your name (required): ")
        person.type(b"\x04")
        assert answer_in(person.ends()[1]) == {"action": "cancel"}


def test_a_default_is_shown_by_its_title_and_sent_by_its_value(home: Path):
    places = [{"const": "in", "title": "Inside"}, {"const": "out", "title": "On the terrace"}]
    name = "A field with quite a long title for so small a terminal"
    fields = {
        "place": {"type": "string", "oneOf": places, "default": "out"},
        "places": {"type": "array", "title": name, "items": {"anyOf": places}, "default": ["in", "out"]},
    }
    form = {"message": "", "requestedSchema": {"type": "object", "properties": fields}}
    with Person(*words("2025-11-25", "elicitation/create", form)) as person:
        person.sees("place (a number or name from the list) [On the terrace]: ")
        person.type(b"\n")
        shown = person.sees("[Inside, On the terrace]: ").replace("\r", "")
        assert max(len(line) for line in shown.splitlines()) < 100, "the terminal breaks no line"
        person.type(b"\n")
        shown = person.answers(KEYS, "y")
        assert "out (On the terrace)" in shown
        assert "in, out (Inside, On the terrace)" in shown
        content = {"place": "out", "places": ["in", "out"]}
        assert answer_in(person.ends()[1]) == {"action": "accept", "content": content}


def test_what_was_entered_can_be_entered_again(home: Path):
    form = {"message": "", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
    with Person(*words("2025-11-25", "elicitation/create", form)) as person:
        person.sees("a: ")
        person.type(b"one\n")
        person.answers(KEYS, "e")
        person.sees("a [one]: ")
        person.type(b"two\n")
        person.answers(KEYS, "y")
        assert answer_in(person.ends()[1]) == {"action": "accept", "content": {"a": "two"}}


@pytest.mark.requirement("ASK-2")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_page_is_shown_with_its_host_and_warnings(home: Path, revision: str):
    with Person(*words(revision, "elicitation/create", PAGE)) as person:
        shown = person.answers("y/n/c", "y")
        assert PAGE["url"] in shown
        assert "host: xn--80ak6aa92e.example" in shown
        assert "! The host is written in punycode" in shown
        assert "y  yes, I open it myself" in shown
        if revision == "2026-07-28":  # the call is made again: not before the person is done
            person.answers("d/c", "d")
        assert answer_in(person.ends()[1]) == {"action": "accept"}


def test_without_a_terminal_questions_are_declined(home: Path):
    for params in (FORM, PAGE):
        done = run(*words("2025-11-25", "elicitation/create", params))
        assert answer_in(done.stdout) == {"action": "decline"}, done.stderr


@pytest.mark.requirement("ASK-3")
def test_a_question_disappears_when_its_call_ends(home: Path):
    with Person(*words("2025-11-25", "elicitation/create", FORM, patient=False)) as person:
        code, shown = person.ends()

    assert code == exit_codes.OK
    assert shown.endswith("asked\n")


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_servers_get_the_folders_of_add_dir_as_roots(home: Path, revision: str):
    (home / "more").mkdir()
    done = run(*words(revision, "roots/list", {}), "--add-dir", home / "more", "--add-dir", "..")
    here = [home / "work", home / "more", home]
    assert [root["uri"] for root in answer_in(done.stdout)["roots"]] == [each.as_uri() for each in here]
    missing = run(*words(revision, "roots/list", {}), "--add-dir", home / "none")
    assert missing.returncode == exit_codes.USAGE
