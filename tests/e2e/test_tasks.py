"""`dragoman tasks`: a call left at its server, listed, shown, fetched and cancelled by later commands."""

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import exit_codes
from tests.e2e.forked import run
from tests.e2e.person import Person

pytestmark = [pytest.mark.slow, pytest.mark.requirement("CAL-8", "CLI-2")]

SERVER_PROGRAMS = Path(__file__).parents[1] / "servers" / "runs_tasks.py"


@pytest.fixture(params=["legacy", "modern"])
def server(home: Path, request: pytest.FixtureRequest) -> None:
    words = ["-S", "-E", str(SERVER_PROGRAMS), request.param, str(home / "tasks")]
    entry = {"command": sys.executable, "args": words}
    done = run("mcp", "add-json", "--scope", "user", "desk", json.dumps(entry))
    assert done.returncode == exit_codes.OK, done.stderr


def left_running(tool: str, **arguments: Any) -> str:
    """The id of a call that is left at its server."""
    done = run("call", "--detach", "--json", f"mcp__desk__{tool}", json.dumps(arguments))
    assert done.returncode == exit_codes.OK, done.stderr
    document = json.loads(done.stdout)
    assert document["isError"] is False
    return document["task"]


def listed() -> list[dict[str, Any]]:
    return json.loads(run("tasks", "list", "--json").stdout)["tasks"]


def test_a_detached_call_is_listed_shown_and_fetched(server: None):
    task = left_running("work", steps=3, text="the result")
    (found,) = listed()
    assert (found["id"], found["server"], found["tool"], found["status"]) == (
        task, "desk", "mcp__desk__work", "unknown",
    )  # fmt: skip
    assert task in run("tasks", "list").stdout
    assert listed() != []
    assert run("tasks", "list", "--server", "other").stderr == "No tasks are running.\n"

    shown = run("tasks", "show", task, "--json")
    assert (shown.returncode, json.loads(shown.stdout)["status"]) == (exit_codes.OK, "working")

    done = run("tasks", "resume", task)
    assert (done.returncode, done.stdout) == (exit_codes.OK, "the result\n"), done.stderr
    assert listed() == []
    again = run("tasks", "resume", task)
    assert again.returncode == exit_codes.NOT_FOUND
    assert f"there is no task {task}" in again.stderr


def test_a_detached_call_is_reported_with_its_possible_end(server: None):
    done = run("call", "--detach", "mcp__desk__endless")
    assert done.returncode == exit_codes.OK
    (task,) = [each["id"] for each in listed()]
    began, fetched = done.stdout.splitlines()
    assert began.startswith(f"The call continues at its server as {task}.")
    assert fetched == f"Its result is not known yet: fetch it with `dragoman tasks resume {task}`."
    assert "! desk runs on this computer and ends with this command." in done.stderr
    run("tasks", "cancel", task)


def test_a_task_is_cancelled(server: None):
    task = left_running("endless")
    done = run("tasks", "cancel", task)
    assert done.returncode == exit_codes.OK, done.stderr
    assert "cancelled" in done.stdout
    assert listed() == []


def test_a_task_that_the_server_does_not_know(server: None):
    task = left_running("endless")
    run("call", "mcp__desk__forget")
    done = run("tasks", "resume", task, "--json")
    assert done.returncode == exit_codes.NOT_FOUND
    assert json.loads(done.stdout)["error"]["code"] == "task-not-found"
    shown = run("tasks", "show", task)
    assert shown.returncode == exit_codes.NOT_FOUND


def test_the_time_limit_of_a_fetch(server: None):
    task = left_running("endless")
    done = run("tasks", "resume", task, "--timeout", "0.5")
    assert done.returncode == exit_codes.TIMEOUT
    assert listed() == []


def test_a_deny_rule_applies_to_tasks_of_its_tool(server: None, home: Path):
    task = left_running("work", steps=50)
    assert run("permissions", "add", "deny", "mcp__desk__work", "--scope", "user").returncode == 0
    for command in ("resume", "show", "cancel"):
        done = run("tasks", command, task)
        assert done.returncode == exit_codes.REFUSED, done.stderr
    assert [each["id"] for each in listed()] == [task]


def test_an_ordinary_call_is_printed_by_detach_too(server: None):
    done = run("call", "--detach", "mcp__desk__notes")
    assert (done.returncode, done.stdout) == (exit_codes.OK, "[]\n"), done.stderr


def test_ctrl_c_cancels_the_task(server: None, home: Path):
    with Person("call", "mcp__desk__endless") as person:
        deadline = time.monotonic() + 30
        while not listed():
            assert time.monotonic() < deadline
        person.process.send_signal(signal.SIGINT)
        assert person.ends()[0] == exit_codes.INTERRUPTED
    assert listed() == []
    assert ["tasks/cancel", "t1"] in json.loads((home / "tasks").read_text())["notes"]
