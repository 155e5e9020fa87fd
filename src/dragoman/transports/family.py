"""The processes of one server: the one that was started, and all its descendants.

The family consists of the process's session, its descendants, and every process with its marker in the
environment. The marker finds children that were forked twice and adopted by init, unless they replaced their
environment. Meant to be used from a worker thread: scans of /proc take milliseconds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from dragoman.processes import (
    HAS_PROC,
    ProcessFacts,
    all_processes,
    check_group_exists,
    marker_of,
    read_process,
    signal_group,
    signal_process,
    start_of,
)

KERNEL_PARENT: Final = 2
"""The parent of the kernel's own threads, which have no environment."""

Identity = tuple[int, int]
"""Pid and start time."""


class Snapshot:
    """All processes at one moment."""

    def __init__(self, processes: Sequence[ProcessFacts], markers: Mapping[Identity, str]) -> None:
        self.by_pid = {facts.pid: facts for facts in processes}
        self.by_session: dict[int, list[ProcessFacts]] = {}
        self.by_parent: dict[int, list[ProcessFacts]] = {}
        self.by_marker: dict[str, list[ProcessFacts]] = {}
        for facts in processes:
            self.by_session.setdefault(facts.session, []).append(facts)
            self.by_parent.setdefault(facts.parent, []).append(facts)
            if marker := markers.get((facts.pid, facts.started)):
                self.by_marker.setdefault(marker, []).append(facts)


class Scanner:
    """Takes snapshots, and caches the markers: a process without one does not get one later."""

    def __init__(self) -> None:
        self._markers: dict[Identity, str] = {}

    def scan(self) -> Snapshot:
        processes = list(all_processes())
        known, self._markers = self._markers, {}
        for facts in processes:
            identity = (facts.pid, facts.started)
            marker = known[identity] if identity in known else _marker(facts)
            if marker is not None:
                self._markers[identity] = marker
        return Snapshot(processes, self._markers)


def _marker(facts: ProcessFacts) -> str | None:
    is_of_kernel = KERNEL_PARENT in (facts.pid, facts.parent)
    return marker_of(facts.pid) if facts.is_alive and not is_of_kernel else None


class Family:
    def __init__(self, popen: subprocess.Popen[bytes], marker: str) -> None:
        self._popen = popen
        self.leader = popen.pid
        self.started = start_of(popen.pid)
        self._marker = marker
        self._known: set[Identity] = set()
        """Members seen so far: a process that init adopts later is still a member."""
        self._exit_code: int | None = None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the leader; None while it runs, negative: the signal that ended it.

        It is not waited for, so that its pid and its group's number are not given to another process.
        """
        if self._exit_code is None:
            self._exit_code = self._popen.returncode
        if self._exit_code is None:
            self._exit_code = _peek(self._popen)
        return self._exit_code

    def members(self, snapshot: Snapshot) -> list[ProcessFacts]:
        """The living processes of the family, oldest first."""
        found: dict[int, ProcessFacts] = {}
        waiting = self._seeds(snapshot)
        while waiting:
            facts = waiting.pop()
            if facts.pid not in found and facts.pid != os.getpid():
                found[facts.pid] = facts
                waiting += snapshot.by_parent.get(facts.pid, [])
        self._known.update((facts.pid, facts.started) for facts in found.values())
        return sorted((facts for facts in found.values() if facts.is_alive), key=lambda facts: facts.started)

    def _seeds(self, snapshot: Snapshot) -> list[ProcessFacts]:
        seeds = [
            facts
            for pid, started in self._known
            if (facts := snapshot.by_pid.get(pid)) is not None and facts.started == started
        ]
        leader = snapshot.by_pid.get(self.leader)
        if leader is None or leader.started == self.started:  # otherwise another process has its pid
            seeds += snapshot.by_session.get(self.leader, [])
        return seeds + snapshot.by_marker.get(self._marker, [])

    def is_gone(self, members: Sequence[ProcessFacts]) -> bool:
        if HAS_PROC:
            return self.exit_code is not None and not members
        return self._popen.poll() is not None and not _answers(self.leader)

    def signal(self, number: signal.Signals, members: Sequence[ProcessFacts]) -> None:
        """Signals the group of the leader, and every other group of a member, each with one system call:
        processes that fork all the time stay in their group."""
        signal_group(self.leader, self.started, number)
        own_session = os.getsid(0)
        others = {facts.group: facts for facts in members if facts.group != self.leader}
        for facts in others.values():
            if facts.session != own_session:
                _signal_group_of(facts, number)
        for facts in members:
            if facts.group != self.leader and facts.session == own_session:
                signal_process(facts.pid, facts.started, number)

    def reap(self) -> None:
        """Waits for the leader, which has ended. After that its pid may be reused."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(0)


def _signal_group_of(member: ProcessFacts, number: signal.Signals) -> None:
    """Signals the group that a member was in, unless the number meanwhile belongs to a younger process."""
    leader = read_process(member.group)
    if leader is None or leader.started <= member.started:
        signal_group(member.group, leader.started if leader is not None else 0, number)


def _peek(popen: subprocess.Popen[bytes]) -> int | None:
    try:
        ended = os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (AttributeError, OSError):  # no waitid here, or the process was waited for elsewhere
        return popen.poll()
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _answers(group: int) -> bool:
    try:
        check_group_exists(group)
    except PermissionError:
        return True
    except OSError:
        return False
    return True
