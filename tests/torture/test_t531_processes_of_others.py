"""T531: processes that killed hosts have left are ended at the next start, and no others: neither a process
that got the id of a group, nor the servers of a running host in another pid namespace."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.processes import MARKER
from dragoman.transports import orphans
from dragoman.transports.orphans import ProcessWatchdog, pid_file_dir
from tests.torture.child_programs import alive, wait_for_deaths

pytestmark = pytest.mark.requirement("TRN-1")
DEAD_HOST = f"{2**22 + 1}-1"
SLEEP = "import time; time.sleep(60)"
FORK = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', '{SLEEP}']).pid, flush=True)"
"""A program that ends at once, and leaves a child in its group."""


@pytest.fixture
def listing(home: Path) -> Iterator[ProcessWatchdog]:
    """The processes that a host lists."""
    listing = ProcessWatchdog()
    listing.new_marker()
    yield listing
    for pid in list(listing._groups):
        listing.release(pid)


@contextmanager
def leaderless(**env: str) -> Iterator[tuple[int, int]]:
    """The id of a group whose leader has ended, and its only member."""
    command = [sys.executable, "-S", "-E", "-c", FORK]
    leader = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True, env=env)
    assert leader.stdout is not None
    member = int(leader.stdout.readline())
    leader.stdout.close()
    leader.wait()
    try:
        yield leader.pid, member
    finally:
        if alive(member):
            os.kill(member, signal.SIGKILL)


def die(listing: ProcessWatchdog) -> Path:
    """The pid file of the host, as if the host and its watchdog had been killed."""
    path = listing._pid_file
    assert path is not None
    return path.rename(pid_file_dir() / DEAD_HOST)


def listed(listing: ProcessWatchdog, group: int) -> None:
    listing.watch(group)
    with open(listing._pid_file or "", "a") as file:
        file.write(f"+ {group} 1\n")  # an earlier process had this number


def test_t531_an_unrelated_process_with_the_id_of_a_group_is_not_ended(listing: ProcessWatchdog):
    with leaderless() as (group, member):
        listed(listing, group)
        path = die(listing)
        assert orphans.sweep() == []
        assert alive(member)
        assert not path.exists()


def test_t531_a_group_without_its_leader_is_ended_if_it_belongs_to_the_host(listing: ProcessWatchdog):
    with leaderless(**{MARKER: listing.new_marker()}) as (group, member):
        listed(listing, group)
        die(listing)
        assert orphans.sweep() == [group]
        assert wait_for_deaths([member], 5) == []


def test_t531_servers_of_a_host_in_another_pid_namespace_are_not_ended(
    listing: ProcessWatchdog, monkeypatch: pytest.MonkeyPatch
):
    """A container shares the state folder: its processes are visible here, with other pids."""
    environ = {MARKER: listing.new_marker()}
    server = subprocess.Popen([sys.executable, "-S", "-E", "-c", SLEEP], start_new_session=True, env=environ)
    with monkeypatch.context() as there:
        there.setattr(os, "readlink", lambda path: "pid:[1]")
        listing.watch(server.pid)
    path = die(listing)
    try:
        assert orphans.sweep() == []
        assert server.poll() is None
        assert path.exists()
    finally:
        server.kill()
        server.wait()
