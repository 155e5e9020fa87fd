"""Reads the facts about processes of this machine, and signals only exactly the intended process.

A pid is reused once its process has ended and was waited for. Pid and start time together identify one
process permanently, so every signal here is sent only after the start time was compared; where the system has
pidfds, nothing can change between the comparison and the signal.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

HAS_GROUPS: Final = hasattr(os, "killpg")
"""Whether this system has process groups and sessions. Only with them can all processes that a program starts
be ended, so without them (Windows) no command is started."""
NO_COMMANDS: Final = "commands cannot be started on this system yet"
KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)
HAS_PROC: Final = os.path.exists("/proc/self/stat")
COMMAND_LIMIT: Final = 200
MARKER: Final = "DRAGOMAN_SERVER_PROCESS"
"""The environment variable by which all descendants of a server's process are found, also in other process
groups."""

_SHORTAGE: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_MARKER_PREFIX: Final = f"{MARKER}=".encode()


def run_in_forked_children(function: Callable[[], object]) -> None:
    """Calls the function in each child that this program forks, before anything else."""
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(after_in_child=function)


class ProcessFacts(NamedTuple):
    pid: int
    state: str
    parent: int
    group: int
    session: int
    started: int
    """Clock ticks between boot and the start of the process."""

    @property
    def is_alive(self) -> bool:
        return self.state not in "ZX"


def read_process(pid: int) -> ProcessFacts | None:
    """The facts about a process, also about one that ended and was not waited for; None if there is none."""
    try:
        return find_process(pid)
    except OSError:
        return None


def find_process(pid: int) -> ProcessFacts | None:
    """Like `read_process`; raises `OSError` where it cannot be known, because no file descriptor is left."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError as error:
        _check_shortage(error)
        return None if HAS_PROC else _read_process_with_ps(pid)
    # The program's name is in parentheses and may contain anything, parentheses included.
    fields = text[text.rindex(b")") + 2 :].split()
    return ProcessFacts(
        pid, fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19])
    )


def _check_shortage(error: OSError) -> None:
    """Raises the error if the reason is not this file, but that no file can be opened now."""
    if error.errno in _SHORTAGE:
        raise error


def _read_process_with_ps(pid: int) -> ProcessFacts | None:
    """Reads the facts with `ps`; the start time is a number computed from its text."""
    command = ["/bin/ps", "-o", "stat=,pgid=,sess=,lstart=", "-p", str(pid)]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=2, check=False).stdout.split(
            None, 3
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if len(answer) < 4:
        return None
    started = int.from_bytes(answer[3].strip().encode(), "big") % 10**12
    return ProcessFacts(pid, answer[0][0], 0, int(answer[1]), pid, started)


def start_of(pid: int) -> int:
    """When a process was started; 0 if there is none."""
    facts = read_process(pid)
    return facts.started if facts is not None else 0


def all_processes() -> Iterator[ProcessFacts]:
    """Every process. Empty where there is no /proc. Raises `OSError` like `find_process`."""
    try:
        names = os.listdir("/proc")
    except OSError as error:
        _check_shortage(error)
        return
    for name in names:
        if name.isdigit() and (facts := find_process(int(name))) is not None:
            yield facts


def group_members(group: int, since: int = 0) -> list[int]:
    """Living processes of a group whose session it also leads. Empty where there is no /proc. Raises
    `OSError` like `find_process`."""
    return [
        facts.pid
        for facts in all_processes()
        if facts.group == group and facts.session == group and facts.started >= since and facts.is_alive
    ]


def marker_of(pid: int) -> str | None:
    """The value of `MARKER` in the environment that a process was started with; empty if there is none.

    None: not known yet, because the process is just being started. An environment that may not be read counts
    as empty. Raises `OSError` like `find_process`.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
    except OSError as error:
        _check_shortage(error)
        return ""
    if not environment:
        return None
    for entry in environment.split(b"\0") if _MARKER_PREFIX in environment else ():
        if entry.startswith(_MARKER_PREFIX):
            return entry[len(_MARKER_PREFIX) :].decode("ascii", "replace")
    return ""


def command_of(pid: int) -> str:
    """The command line of a process, cut; empty if it cannot be read."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(4 * COMMAND_LIMIT).replace(b"\0", b" ")
    except OSError:
        return ""
    return words.decode("utf-8", "replace").strip()[:COMMAND_LIMIT]


def signal_process(pid: int, started: int, number: signal.Signals) -> bool:
    """Sends a signal to the process with this start time; returns false if it has ended or may not be
    signalled."""
    try:
        pidfd = os.pidfd_open(pid)
    except (AttributeError, OSError):
        pidfd = None
    try:
        if pid <= 1 or start_of(pid) != started:
            return False
        if pidfd is not None:
            signal.pidfd_send_signal(pidfd, number)
        else:
            os.kill(pid, number)
    except OSError:
        return False
    finally:
        if pidfd is not None:
            os.close(pidfd)
    return True


def signal_group(leader: int, started: int, number: signal.Signals) -> bool:
    """Sends a signal to the group of the leader with this start time; returns false if that group has ended.

    Where the leader has ended, the number still belongs to its group: it is not given to another process as
    long as the group has members.
    """
    facts = read_process(leader)
    if leader <= 1 or (facts is not None and facts.started != started):
        return False
    try:
        _send_to_group(leader, number)
    except OSError:
        return False
    return True


def _send_to_group(group: int, number: int) -> None:
    if not HAS_GROUPS:
        raise ProcessLookupError
    os.killpg(group, number)


def check_group_exists(group: int) -> None:
    """Raises `ProcessLookupError` if a group has no members, not even ones that were not waited for,
    `PermissionError` if all are another user's."""
    _send_to_group(group, 0)


def kill_group(group: int) -> None:
    """Kills a group whose number was compared before. Raises `OSError`."""
    _send_to_group(group, KILL)


def check_exists(pid: int) -> None:
    """Raises `ProcessLookupError` if there is no such process, `PermissionError` if it is another user's.

    Where that cannot be checked, every process counts as running: on Windows, signal 0 is Ctrl-C.
    """
    if HAS_GROUPS:
        os.kill(pid, 0)


def described(facts: Iterable[ProcessFacts]) -> tuple[str, ...]:
    """Descriptions of the processes for people: pid and command."""
    return tuple(f"{each.pid} ({command_of(each.pid) or 'its command cannot be read'})" for each in facts)
