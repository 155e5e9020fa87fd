"""Facts about processes, and signals that reach only the one that is meant."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.processes import (
    MARKER,
    command_of,
    described,
    marker_of,
    read_process,
    signal_group,
    signal_process,
    start_of,
)

NOBODY = 2**22 + 1


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        ["sleep", "600"], start_new_session=True, env={"PATH": "/usr/bin:/bin", MARKER: "token.7", "A": "b"}
    )
    # The system tells that the program was started a moment before its words and variables can be read.
    while not Path(f"/proc/{process.pid}/environ").read_bytes():
        time.sleep(0.001)
    yield process
    process.kill()
    process.wait()


def test_a_process_that_does_not_exist_was_never_started():
    assert start_of(NOBODY) == 0
    assert start_of(os.getpid()) > 0


def test_the_marker_is_read_from_the_environment(sleeper: subprocess.Popen[bytes]):
    assert marker_of(sleeper.pid) == "token.7"
    assert marker_of(NOBODY) == ""


def test_a_process_is_described_by_pid_and_command(sleeper: subprocess.Popen[bytes]):
    facts = read_process(sleeper.pid)
    assert facts is not None

    assert command_of(sleeper.pid) == "sleep 600"
    assert described([facts]) == (f"{sleeper.pid} (sleep 600)",)
    assert described([facts._replace(pid=NOBODY)]) == (f"{NOBODY} (its command cannot be read)",)


def test_a_zombie_process_is_found_and_not_alive(sleeper: subprocess.Popen[bytes]):
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    facts = read_process(sleeper.pid)

    assert facts is not None
    assert not facts.is_alive


@pytest.mark.parametrize("pid", [-1, 0, 1])
def test_pids_that_mean_many_processes_are_never_signalled(pid: int, monkeypatch):
    sent: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, number: sent.append(group))
    monkeypatch.setattr(os, "kill", lambda group, number: sent.append(group))
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda *_: sent.append(pid))

    assert not signal_group(pid, start_of(pid), signal.SIGTERM)
    assert not signal_process(pid, start_of(pid), signal.SIGTERM)
    assert sent == []


def test_without_pidfds_start_times_are_compared(sleeper, monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")

    assert not signal_process(sleeper.pid, start_of(sleeper.pid) + 1, signal.SIGTERM)
    assert signal_process(sleeper.pid, start_of(sleeper.pid), signal.SIGTERM)
    assert sleeper.wait(5) == -signal.SIGTERM


def test_an_ended_process_group_is_not_signalled(sleeper: subprocess.Popen[bytes]):
    started = start_of(sleeper.pid)
    sleeper.kill()
    sleeper.wait()

    assert not signal_group(sleeper.pid, started, signal.SIGTERM)
    assert not signal_process(sleeper.pid, started, signal.SIGTERM)
