"""Processes that a test has left are found in every form."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.leftover_processes import leftovers, running_processes

# Starts a sleeper in a session of its own and exits: the sleeper is adopted by init, and carries only HOME.
ABANDON = """
import os, subprocess
few = {name: os.environ[name] for name in ("HOME", "PATH")}
subprocess.Popen(["sleep", "60"], env=few, start_new_session=True)
"""


def test_without_started_processes_none_is_found(home: Path):
    before = running_processes()
    assert leftovers(home, before, grace_seconds=0) == []


def test_a_child_is_found_and_ended(home: Path):
    before = running_processes()
    child = subprocess.Popen(["sleep", "60"])
    (left,) = leftovers(home, before, grace_seconds=0)
    assert left == f"{child.pid} sleep 60"
    assert child.wait(5) == -9


def test_a_process_adopted_by_init_is_found_by_its_home(home: Path):
    before = running_processes()
    subprocess.run([sys.executable, "-c", ABANDON], check=True)
    (left,) = leftovers(home, before, grace_seconds=0)
    assert left.endswith("sleep 60")


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_a_child_that_was_not_waited_for_is_found(home: Path):
    before = running_processes()
    child = subprocess.Popen(["true"])
    left: list[str] = []
    while not any("zombie" in line for line in left):
        left = leftovers(home, before, grace_seconds=0)
    child.wait(5)
    assert left == [f"{child.pid} (a zombie that was not waited for)"]


def test_a_child_that_ends_in_time_is_not_reported(home: Path):
    before = running_processes()
    with subprocess.Popen(["sleep", "0.05"]) as child:
        child.wait(5)
        assert leftovers(home, before, grace_seconds=5) == []
