"""T144: child processes with a session and an environment of their own, and process groups that fork
continuously."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from dragoman.processes import ProcessFacts, start_of
from dragoman.transports.family import Family
from tests.servers import stdio_server
from tests.torture.child_programs import alive

FORKS = "import os, signal; pid = os.fork(); pid and print(pid, flush=True); signal.pause()"


@pytest.mark.requirement("TRN-1")
async def test_t144_a_child_known_only_by_its_parent_is_ended_although_its_server_ends_first(bystander_host):
    async with bystander_host(stdio_server("has_a_child.py", "stranger", "orphaning")) as a:
        child = int(await a.call("child"))
        assert alive(child)
    assert not alive(child)


@pytest.fixture
def leader() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["/bin/sleep", "3600"], start_new_session=True) as process:
        yield process
        process.kill()


@pytest.fixture
def group() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process in a session of its own, and its child."""
    words = [sys.executable, "-c", FORKS]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        yield process, child
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_t144_a_signal_reaches_the_complete_group_of_a_member_that_ended(leader, group):
    """The scan found a process of the group that has ended since; the other members were started after the
    scan."""
    process, child = group
    family = Family(leader, "marker")
    ended = ProcessFacts(2**22 + 1, "S", 1, process.pid, process.pid, start_of(child))
    family.signal(signal.SIGKILL, [ended])
    assert process.wait(10) == -signal.SIGKILL


def test_t144_a_group_whose_id_was_reused_by_a_newer_process_is_not_signalled(leader, group):
    process, child = group
    family = Family(leader, "marker")
    older = ProcessFacts(2**22 + 1, "S", 1, process.pid, process.pid, start_of(process.pid) - 1)
    family.signal(signal.SIGKILL, [older])
    assert leader.wait(10) == -signal.SIGKILL
    assert process.poll() is None
    assert alive(child)
