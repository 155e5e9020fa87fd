"""`dragoman logs`: what was called, who allowed it, and nothing that could be secret."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from dragoman.calls.audit import FILE
from dragoman.cli import exit_codes
from tests.e2e.command import plain
from tests.e2e.forked import in_terminal, run
from tests.e2e.person import offering, settings, tool
from tests.e2e.server import EVIL

pytestmark = [pytest.mark.slow, pytest.mark.requirement("PRM-6")]

SERVER = offering(tool("get", readOnlyHint=True), tool("put"), tool("burn", destructiveHint=True))


def entries(*words: str) -> list[dict[str, Any]]:
    done = run("logs", "--json", *words)
    assert (done.returncode, done.stderr) == (exit_codes.OK, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def logs(home: Path) -> Path:
    folder = home / ".dragoman" / "logs"
    folder.mkdir(parents=True, mode=0o700)
    return folder / FILE


def test_no_log_is_no_error(home: Path):
    done = run("logs", "--audit")

    assert (done.returncode, done.stdout) == (exit_codes.OK, "")
    assert "No calls yet" in done.stderr
    assert entries() == []


def test_every_call_is_shown_with_decision_reason_and_outcome(home: Path):
    file = settings(home, deny=["mcp__s__put"])
    run("call", "mcp__s__get", "key=c4n4ry", "other=1", *SERVER)
    run("call", "mcp__s__put", *SERVER)
    run("call", "mcp__s__burn", *SERVER)
    run("call", "mcp__s__none", *SERVER)
    get, put, burn, none = entries("--audit")

    assert (get["tool"], get["arguments"], get["decision"], get["by"], get["outcome"]) == (
        "mcp__s__get", ["key", "other"], "allow", "person", "ok",
    )  # fmt: skip
    assert (put["decision"], put["by"], put["rule"], put["rule_source"], put["outcome"]) == (
        "deny", "rule", "mcp__s__put", str(file), "refused",
    )  # fmt: skip
    assert (burn["decision"], burn["outcome"]) == ("deny", "refused")
    assert none["outcome"] == "unknown-tool"
    assert all(entry["pid"] and entry["session"] and entry["time"].endswith("Z") for entry in (get, put))
    assert get["duration_ms"] > 0

    shown = run("logs").stdout
    assert "c4n4ry" not in shown
    assert [line.split()[2] for line in shown.splitlines()] == [
        f"mcp__s__{n}" for n in ("get", "put", "burn", "none")
    ]
    assert "(key, other) ok" in shown
    assert f"deny rule mcp__s__put of user ({file})" in shown
    assert re.search(r"unknown-tool [\d.]+ ms$", shown.splitlines()[-1])  # nobody decided about it


def test_entries_can_be_selected_by_number_refusal_and_tool(logs: Path):
    lines = [
        {"tool": f"t{number % 3}", "decision": "deny" if number % 2 else "allow"} for number in range(60)
    ]
    logs.write_text("".join(json.dumps(line) + "\n" for line in lines))

    assert entries() == lines[-50:]
    assert entries("-n", "3") == lines[-3:]
    assert entries("-n", "100") == lines
    assert entries("--denied", "-n", "2") == [line for line in lines if line["decision"] == "deny"][-2:]
    assert {line["tool"] for line in entries("--tool", "t1")} == {"t1"}
    assert run("logs", "-n", "0").returncode == exit_codes.USAGE


ODD = {
    "no fields": {},
    "wrong kinds": {"time": 1, "tool": None, "arguments": 7, "decision": [], "duration_ms": {}, "outcome": 3},
    "arguments as text": {"arguments": "abc"},
    "many arguments": {"arguments": [str(number) for number in range(50)]},
    "hostile": dict.fromkeys(("time", "tool", "decision", "by", "reason", "outcome", "duration_ms"), EVIL),
    "hostile arguments": {"arguments": [EVIL, {EVIL: EVIL}]},
}


@pytest.mark.parametrize("entry", ODD.values(), ids=ODD.keys())
def test_hostile_entries_are_shown_cleaned(logs: Path, entry: dict[str, Any]):
    logs.write_text(json.dumps(entry) + "\n")
    for words in ((), ("--json",)):
        code, output = in_terminal("logs", *words)
        assert code == exit_codes.OK
        assert "Traceback" not in output
        assert all(" " <= sign <= "~" or sign in "\n…" for sign in plain(output)), ascii(output)
    assert entries() == [entry]


def test_lines_that_are_not_entries_are_skipped(logs: Path):
    logs.write_bytes(b'\xff\n[]\n{"tool": "one"}\n{"tool": "ha\n' + b"[" * 100_000 + b"\n")
    os.mkfifo(logs.with_suffix(".1.jsonl"))

    assert entries() == [{"tool": "one"}]


def test_a_folder_in_place_of_the_log_stops_no_call(logs: Path):
    logs.symlink_to(logs.parent / "elsewhere")
    done = run("call", "mcp__s__get", *SERVER)

    assert (done.returncode, done.stdout) == (exit_codes.OK, "get\n")
    assert not (logs.parent / "elsewhere").exists()


def test_callers_of_a_gateway_are_shown_and_the_local_person_is_not(logs: Path):
    lines = [
        {
            "time": "1",
            "tool": "mcp__s__get",
            "caller": caller,
            "decision": "allow",
            "outcome": "ok",
            "duration_ms": 2,
        }
        for caller in ("local", "ada\u202e")
    ]
    logs.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shown = run("logs", "--audit").stdout.splitlines()
    assert shown == ["1 allow mcp__s__get () ok 2 ms", "1 ada\\u202e allow mcp__s__get () ok 2 ms"]


def test_the_deciding_party_is_shown_once(logs: Path):
    reasons = [
        ("person", "allowed by the person: typed on the command line"),
        ("person", "denied by the person"),
        ("mode", "allowed by the person for this session"),
        ("person", "asked by the person"),
        ("rule", "deny mcp__s"),
    ]
    entry = {"time": "1", "tool": "mcp__s__get", "decision": "allow", "outcome": "ok", "duration_ms": 2}
    lines = [{**entry, "by": by, "reason": reason} for by, reason in reasons]
    logs.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shown = [line.partition(" ms ")[2] for line in run("logs", "--audit").stdout.splitlines()]
    assert shown == [
        "by the person: typed on the command line",
        "by the person",
        "by mode: allowed by the person for this session",
        "by person: asked by the person",
        "by rule: deny mcp__s",
    ]
