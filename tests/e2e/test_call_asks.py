"""`dragoman call` and its person: typing it is a yes, unless a rule or the tool wants a second one."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from dragoman.calls.audit import read
from dragoman.cli import exit_codes
from tests.e2e.command import DRAGOMAN, LIMIT_SECONDS
from tests.e2e.forked import Terminal, run
from tests.e2e.person import Person, offering, settings, tool

pytestmark = [pytest.mark.slow, pytest.mark.requirement("PRM-3")]

PLAIN, READS, DESTROYS = tool("plain"), tool("reads", readOnlyHint=True), tool("burn", destructiveHint=True)
SERVER = offering(PLAIN, READS, DESTROYS)
WITH_RULE = "y/a/p/n"
"""The keys where a yes may last."""
EACH_TIME = "y/n"
"""The keys where an ask rule wants to be asked each time."""
CALL_BURN = ("call", "mcp__s__burn", "letter=all", *SERVER)


def audited(home: Path) -> list[tuple[str, str]]:
    return [
        (entry.get("decision", "none"), entry.get("by", "")) for entry in read(home / ".dragoman" / "logs")
    ]


# --- what needs no question ---


@pytest.mark.parametrize("name", ["plain", "reads"])
def test_typing_the_call_is_the_permission_in_a_script_and_on_a_terminal(home: Path, name: str):
    done = run("call", f"mcp__s__{name}", *SERVER)
    with Terminal("call", f"mcp__s__{name}", *SERVER) as terminal:
        shown = terminal.finish()

    assert (done.returncode, done.stdout) == (exit_codes.OK, f"{name}\n"), done.stderr
    assert (terminal.process.returncode, shown) == (exit_codes.OK, f"{name}\n"), "nothing is asked"
    assert audited(home) == [("allow", "person")] * 2


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize("yes", [(), ("--yes",)], ids=["", "--yes"])
@pytest.mark.parametrize("scope", ["user", "local", "enterprise"])
def test_a_denied_call_is_refused_even_with_yes(home: Path, scope: str, yes: tuple[str, ...]):
    file = settings(home, scope=scope, deny=["mcp__s__plain"])
    done = run("call", "mcp__s__plain", *yes, *SERVER)
    with Terminal("call", "mcp__s__plain", *yes, *SERVER) as terminal:
        shown = terminal.finish()

    assert (done.returncode, done.stdout) == (exit_codes.REFUSED, "")
    assert "deny rule mcp__s__plain" in done.stderr
    assert str(file) in done.stderr, "where it stands"
    assert terminal.process.returncode == exit_codes.REFUSED
    assert "y/" not in shown, "nobody is asked about what is denied"
    assert audited(home) == [("deny", "rule")] * 2


def test_with_json_a_refusal_is_a_document(home: Path):
    settings(home, deny=["mcp__s"])
    done = run("call", "mcp__s__plain", "--json", *SERVER)

    document = json.loads(done.stdout)
    assert done.returncode == exit_codes.REFUSED
    assert (document["isError"], document["error"]["code"]) == (True, "refused")


@pytest.mark.requirement("CFG-8")
def test_a_call_asks_only_about_servers_that_it_starts(home: Path):
    (home / "work" / ".mcp.json").write_text(json.dumps({"mcpServers": {"other": {"command": "/bin/true"}}}))
    with Person("call", "mcp__s__plain", *SERVER) as person:
        assert person.ends() == (exit_codes.OK, "plain\n")


# --- in a script ---


@pytest.mark.parametrize("by", ["its own word", "an ask rule", "an administrator's ask rule"])
def test_in_a_script_the_yes_option_answers_the_question(home: Path, by: str):
    name = "burn" if by == "its own word" else "plain"
    if "rule" in by:
        settings(home, scope="enterprise" if "admin" in by else "user", ask=["mcp__s__plain"])
    refused = run("call", f"mcp__s__{name}", *SERVER)
    made = run("call", f"mcp__s__{name}", *SERVER, "--yes")

    assert (refused.returncode, refused.stdout) == (exit_codes.REFUSED, "")
    assert "--yes" in refused.stderr
    assert ("destructive" in refused.stderr) == (name == "burn"), "why"
    assert ("ask rule mcp__s__plain" in refused.stderr) == ("rule" in by)
    assert (made.returncode, made.stdout) == (exit_codes.OK, f"{name}\n"), made.stderr


def test_with_redirected_output_a_person_is_still_asked(home: Path, tmp_path: Path):
    words = " ".join([str(DRAGOMAN), "call", "mcp__s__burn", SERVER[0], f"'{SERVER[1]}'"])
    shell = Person()
    shell._words = ["/bin/sh", "-c", f"{words} > {tmp_path}/out"]
    with shell as person:
        person.answers(WITH_RULE, "y")
        code, _ = person.ends()

    assert code == exit_codes.OK
    assert (tmp_path / "out").read_text() == "burn\n", "the question is not in it"


# --- on a terminal ---


def test_the_question_shows_server_tool_arguments_and_reason(home: Path):
    with Person(*CALL_BURN) as person:
        shown = person.answers(WITH_RULE, "n")
        code, rest = person.ends()

    assert code == exit_codes.REFUSED
    for part in ("? s: mcp__s__burn", "declared destructive by the server", 'letter  "all"', "no rule"):
        assert part in shown
    assert "was not allowed: denied by the person" in rest
    assert str(home / ".dragoman" / "settings.json") in shown.replace("\n          ", "")


KEYS = {
    "y": ("y", exit_codes.OK),
    "Y": ("Y", exit_codes.OK),
    "n": ("n", exit_codes.REFUSED),
    "Ctrl-C": ("\x03", exit_codes.INTERRUPTED),
    "Ctrl-D": ("\x04", exit_codes.REFUSED),
    "Escape": ("\x1b", exit_codes.REFUSED),
    "an arrow": ("\x1b[A", exit_codes.REFUSED),
    "others before a yes": ("x7 \r\ty", exit_codes.OK),
    "s, which is not offered": ("sn", exit_codes.REFUSED),
    "t, which is not offered": ("tn", exit_codes.REFUSED),
    "v, which is not offered": ("vn", exit_codes.REFUSED),
    "strange letters": ("éあn", exit_codes.REFUSED),
}


@pytest.mark.parametrize(("typed", "code"), KEYS.values(), ids=KEYS.keys())
def test_each_key_has_its_meaning_and_the_terminal_is_left_as_it_was(typed: str, code: int):
    with Person(*CALL_BURN) as person:
        shown = person.sees(f"  {WITH_RULE}: ")
        for key in [typed] if typed.startswith("\x1b") else typed:
            person.type(key.encode())
            time.sleep(0.02)  # as fingers do
        found, rest = person.ends()
        assert person.is_as_before

    assert found == code
    assert (rest.splitlines()[-1] == "burn") == (code == exit_codes.OK)
    assert "Traceback" not in shown + rest


def test_keys_typed_before_the_question_are_not_an_answer():
    with Person(*CALL_BURN) as person:
        person.type(b"yyyyyyyy\ry")
        person.answers(WITH_RULE, "n")
        code, _ = person.ends()

    assert code == exit_codes.REFUSED


def test_a_closed_terminal_refuses_and_ends_the_command(home: Path):
    with Person(*CALL_BURN) as person:
        person.sees(f"  {WITH_RULE}: ")
        os.close(person._master)
        person._master = os.open(os.devnull, os.O_RDWR)
        person.process.wait(timeout=LIMIT_SECONDS)

    assert [decision for decision, _ in audited(home)] in (["none"], ["deny"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=str)
def test_a_signal_ends_the_command_while_its_question_waits_and_restores_the_terminal(
    home: Path, number: signal.Signals
):
    with Person(*CALL_BURN) as person:
        person.sees(f"  {WITH_RULE}: ")
        started = time.monotonic()
        person.process.send_signal(number)
        code, rest = person.ends()
        assert person.is_as_before

    assert time.monotonic() - started < 10
    assert code == exit_codes.INTERRUPTED
    assert "Traceback" not in rest
    (entry,) = read(home / ".dragoman" / "logs")
    assert entry["outcome"] == "cancelled"


# --- a yes that lasts ---


@pytest.mark.parametrize(("key", "scope"), [("a", "user"), ("p", "local")])
def test_a_permanent_grant_is_written_privately_with_a_digest_and_applies(home: Path, key: str, scope: str):
    file = {
        "user": home / ".dragoman" / "settings.json",
        "local": home / "work" / ".dragoman" / "settings.local.json",
    }[scope]
    with Person(*CALL_BURN) as person:
        shown = person.answers(WITH_RULE, key)
        code, rest = person.ends()
    again = run(*CALL_BURN)

    assert (code, rest.splitlines()[-1]) == (exit_codes.OK, "burn")
    (rule,) = json.loads(file.read_text())["permissions"]["allow"]
    assert rule.startswith("mcp__s__burn@")
    assert len(rule.partition("@")[2]) == 32
    assert f"allow {rule}" in shown, "it was shown before"
    assert file.stat().st_mode & 0o777 == 0o600
    assert (again.returncode, again.stdout) == (exit_codes.OK, "burn\n"), again.stderr
    assert audited(home) == [("allow", "person"), ("allow", "rule")]


def test_a_grant_for_a_project_applies_to_that_project_only(home: Path):
    with Person(*CALL_BURN) as person:
        person.answers(WITH_RULE, "p")
        person.ends()
    elsewhere = home / "other"
    elsewhere.mkdir()

    assert run(*CALL_BURN).returncode == exit_codes.OK
    assert run(*CALL_BURN, cwd=elsewhere).returncode == exit_codes.REFUSED


def test_a_permanent_grant_of_a_changed_tool_no_longer_applies_and_that_is_reported(home: Path):
    with Person(*CALL_BURN) as person:
        person.answers(WITH_RULE, "a")
        person.ends()
    other = offering({**DESTROYS, "description": "Burns, and tells everybody."})
    refused = run("call", "mcp__s__burn", *other)
    with Person("call", "mcp__s__burn", *other) as person:
        shown = person.answers(WITH_RULE, "n")
        person.ends()

    assert refused.returncode == exit_codes.REFUSED
    assert "changed since it was allowed" in refused.stderr
    assert "It was allowed before, and has changed since." in shown
    assert shown.count("changed since") == 1


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize("name", ["plain", "burn"])
def test_an_ask_rule_asks_each_time_and_offers_no_permanent_grant(home: Path, name: str):
    settings(home, ask=["mcp__s"], allow=[f"mcp__s__{name}"])
    for _ in range(2):
        with Person("call", f"mcp__s__{name}", *SERVER) as person:
            shown = person.answers(EACH_TIME, "y")
            assert person.ends()[0] == exit_codes.OK
        assert "ask rule mcp__s" in shown.replace("\n  ", "")


def test_a_call_allowed_by_the_persons_rule_is_not_asked_about(home: Path):
    settings(home, allow=["mcp__s__burn"])

    assert run(*CALL_BURN).returncode == exit_codes.OK


def test_with_a_settings_file_that_cannot_be_written_only_the_rule_is_lost(home: Path):
    # The lock that every change of a file takes cannot be had: its folder is a file.
    (home / ".dragoman" / "state").mkdir(parents=True)
    (home / ".dragoman" / "state" / "locks").touch()
    with Person(*CALL_BURN) as person:
        person.answers(WITH_RULE, "a")
        code, rest = person.ends()

    assert code == exit_codes.OK
    assert "burn" in rest.splitlines()
    file, locks = home / ".dragoman" / "settings.json", home / ".dragoman" / "state" / "locks"
    problem = f"! the rule could not be saved: {file}: its lock in {locks} cannot be used: Not a directory"
    assert problem in " ".join(rest.split()), "it may take several lines"
    assert "Traceback" not in rest


@pytest.mark.requirement("PRM-6")
def test_an_audit_log_that_cannot_be_written_is_reported_beside_the_result(home: Path):
    log = home / ".dragoman" / "logs" / "audit.jsonl"
    log.mkdir(parents=True)
    done = run("call", "mcp__s__plain", *SERVER)

    assert (done.returncode, done.stdout) == (exit_codes.OK, "plain\n")
    assert done.stderr == f"! the audit log {log} cannot be written: Is a directory\n"


# --- what is shown is what runs ---


def test_long_arguments_are_cut_with_a_note_and_v_shows_all(home: Path):
    long = "".join(chr(ord("a") + number % 26) for number in range(3000)) + "THE-END"
    many = {f"n{number:02d}": number for number in range(30)}
    with Person("call", "mcp__s__burn", json.dumps({"long": long, **many}), *SERVER) as person:
        first = person.answers("y/a/p/n/v", "v")
        second = person.answers("y/a/p/n/v", "n")
        person.ends()

    assert "THE-END" not in first
    assert f"… [{len(long) + 2} characters in all]" in first.replace("\n", "").replace(" " * 10, "")
    assert "[11 more arguments]" in first
    unwrapped = second.replace("\n", "").replace(" ", "")
    assert f'long"{long}"' in unwrapped
    assert "n2929" in unwrapped
    assert "…" not in second


@pytest.mark.parametrize("name", ["plain", "burn"])
def test_a_call_with_an_argument_of_a_hundred_kilobytes_is_asked_about_quickly(name: str, home: Path):
    settings(home, ask=["mcp__s__plain"])
    word = "a" * 120_000 + "é"
    started = time.monotonic()
    with Person("call", f"mcp__s__{name}", f"hex={word}", *SERVER) as person:
        person.answers("y/n/v" if name == "plain" else "y/a/p/n/v", "n")
        code, _ = person.ends()

    assert time.monotonic() - started < 10
    assert code == exit_codes.REFUSED
