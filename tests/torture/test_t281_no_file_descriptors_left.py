"""T281: the system gives a command no thread or file descriptor: the command ends with one clear error
message."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command import LIMIT_SECONDS

SERVERS = {"demo": {"command": sys.executable, "args": ["-m", "dragoman.demo"]}}
WITHOUT_THREADS = """
import sys, threading
def refuse(*arguments, **options):
    raise RuntimeError("can't start new thread")
threading._start_new_thread = refuse
from dragoman.cli.entry import main
main()
"""
WITHOUT_DESCRIPTORS = """
import resource, sys
from dragoman.cli import main
import asyncio, concurrent.futures.thread, dragoman.host, dragoman.cli.commands.call
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv.pop()), 99))
main.main()
"""


def run(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)


@pytest.fixture(autouse=True)
def settings(home: Path) -> None:
    file = home / ".dragoman" / "settings.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"mcpServers": SERVERS}))


@pytest.mark.parametrize("words", [("call", "count", "to=1"), ("mcp", "list"), ("tools", "list")], ids=str)
def test_t281_a_command_without_threads_ends_with_one_error(words: tuple[str, ...]):
    done = run(WITHOUT_THREADS, *words)
    assert (done.returncode, done.stderr) == (
        1,
        "error: the command has reached a limit of the operating system: no more threads can be started\n"
        "  hint: Raise the limits of this user or container. A call may have run.\n",
    )


def test_t281_a_command_without_descriptors_reports_that_and_not_a_failure_of_the_output():
    done = run(WITHOUT_DESCRIPTORS, "call", "count", "to=1", "4")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        1,
        "error: the command has reached a limit of the operating system: Too many open files",
    )


def test_t281_a_server_that_cannot_be_started_without_descriptors_is_not_reported_as_faulty():
    done = run(WITHOUT_DESCRIPTORS, "call", "demo", "count", "to=1", "9")
    assert done.returncode == 4
    assert "cannot be run: Too many open files\n  hint: Raise the limits" in done.stderr
