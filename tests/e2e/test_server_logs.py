"""`dragoman logs SERVER`: what a server said, after the command that started it has ended."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import exit_codes
from dragoman.connections.server_log import path_of
from tests.e2e.command import plain
from tests.e2e.forked import in_terminal, run
from tests.e2e.person import Person
from tests.e2e.server import EVIL

pytestmark = [pytest.mark.slow, pytest.mark.requirement("ASK-6", "CLI-2")]

SERVER_PROGRAMS = Path(__file__).parents[1] / "servers" / "logs_by_level.py"


@pytest.fixture
def server(home: Path) -> None:
    entry = {
        "command": sys.executable,
        "args": ["-S", "-E", str(SERVER_PROGRAMS), "legacy"],
        "logLevel": "info",
    }
    done = run("mcp", "add-json", "--scope", "user", "desk", json.dumps(entry))
    assert done.returncode == exit_codes.OK, done.stderr


def say(level: str, text: str) -> None:
    done = run("call", "--yes", "mcp__desk__say", json.dumps({"level": level, "text": text}))
    assert (done.returncode, done.stdout) == (exit_codes.OK, "info\n"), done.stderr


def lines(*words: str) -> list[dict[str, Any]]:
    done = run("logs", "desk", "--json", *words)
    assert (done.returncode, done.stderr) == (exit_codes.OK, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_messages_stderr_and_the_connection_are_shown_in_order(server: None):
    say("warning", "first")
    found = [(line["source"], line["level"], line["text"]) for line in lines()]
    assert found[:3] == [
        ("connection", "info", "connecting"),
        ("connection", "info", "handshaking"),
        ("connection", "info", "connected"),
    ]
    assert ("message", "warning", "first") in found
    assert ("stderr", "info", "stderr: first") in found


def test_level_and_number_select_lines(server: None):
    say("info", "quiet")
    say("error", "loud")
    assert [line["text"] for line in lines("--level", "error")] == ["loud"]
    assert len(lines("-n", "2")) == 2


def test_people_see_cleaned_lines(server: None):
    say("error", EVIL)
    _, shown = in_terminal("logs", "desk", "--level", "error")
    assert "\x1b]" not in shown
    assert "\u202e" not in shown
    assert "error" in plain(shown)
    assert "desk:" in plain(shown)


def test_lines_written_by_other_programs_are_cleaned(home: Path):
    path = path_of("desk")
    path.parent.mkdir(parents=True)
    line = dict.fromkeys(("time", "level", "source", "logger", "text"), EVIL)
    path.write_text(json.dumps(line) + "\nno json\n[1]\n")
    _, shown = in_terminal("logs", "desk")
    assert "\x1b]" not in shown
    assert "\x07" not in shown
    assert run("logs", "desk", "--json").stdout.isascii()


def test_following_shows_new_lines_until_it_is_interrupted(server: None):
    say("info", "before")
    with Person("logs", "desk", "-f") as person:
        person.sees("stderr: before")
        say("notice", "meanwhile")
        person.sees("meanwhile")
        person.process.send_signal(signal.SIGINT)
        assert person.ends()[0] == exit_codes.INTERRUPTED


def test_a_server_without_a_log_and_an_unknown_server(server: None):
    done = run("logs", "desk")
    assert (done.returncode, done.stdout) == (exit_codes.OK, "")
    assert done.stderr.startswith("No log of desk yet.")
    done = run("logs", "dask")
    assert done.returncode == exit_codes.NOT_FOUND
    assert "there is no server 'dask'" in done.stderr
    assert "Did you mean desk?" in done.stderr


def test_options_of_the_other_log_are_refused(home: Path):
    assert run("logs", "-f").returncode == exit_codes.USAGE
    assert run("logs", "--level", "info").returncode == exit_codes.USAGE
    assert run("logs", "desk", "--denied").returncode == exit_codes.USAGE


def test_the_audit_log_of_one_server(server: None):
    say("info", "x")
    done = run("logs", "desk", "--audit", "--json")
    assert [json.loads(line)["tool"] for line in done.stdout.splitlines()] == ["mcp__desk__say"]
    assert run("logs", "other", "--audit", "--json").stdout == ""
