"""Ends servers when the program that started them ends without closing them.

The *watchdog* is a small shell process with the read end of a pipe: when this program ends, the pipe closes,
and the watchdog ends every listed process group and every process with the marker of this program in its
environment. (The kernel's parent-death signal reaches only the direct child, and is bound to the thread that
forked.) The *pid registry* is a file that lists the started processes: if the watchdog was killed too, the
next start ends what is left. A process is signalled only if its start time or its marker matches the record.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from dragoman import paths
from dragoman.processes import (
    KILL,
    MARKER,
    all_processes,
    find_process,
    group_members,
    kill_group,
    marker_of,
    read_process,
    run_in_forked_children,
    signal_process,
    start_of,
)

_WATCHDOG_SCRIPT: Final = """
groups=
while read -r op group started; do
  case $op in
    +) groups="$groups $group:$started" ;;
    -) kept=; for g in $groups; do [ "${g%:*}" = "$group" ] || kept="$kept $g"; done; groups=$kept ;;
  esac
done
# Whether a pid is unused, or still belongs to the process that was started then.
same() {
  facts=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
  set -- "$2" ${facts##*) }
  [ "${21}" = "$1" ]
}
for s in INT TERM KILL; do
  for g in $groups; do
    same "${g%:*}" "${g#*:}" && kill -s $s -- "-${g%:*}" 2>/dev/null
  done
  for e in $(grep -lsaF -e "$1" /proc/[0-9]*/environ 2>/dev/null); do
    e=${e#/proc/}; kill -s $s "${e%/environ}" 2>/dev/null
  done
  sleep 0.3
done
"""


PID_FILE_LIMIT_BYTES: Final = 1024 * 1024
_KILL_ROUNDS: Final = 100
_ROUND_SECONDS: Final = 0.01
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_TOKEN: Final = re.compile(r"[0-9a-f]{16}")


class ProcessWatchdog:
    """Both safeguards, for all servers that this program starts, in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: dict[int, int] = {}
        """The processes that lead the groups, and when each was started."""
        self._held: set[str] = set()
        """Markers of commands."""
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._pid_file: Path | None = None
        self._token = os.urandom(8).hex()
        """The prefix of the markers of all processes that this program starts."""
        self._numbers = itertools.count(1)

    def new_marker(self) -> str:
        """A marker that a new server and its children carry in their environment, as `MARKER`. From this call
        on, every process with it is ended when this program ends, even before its group is listed. Call
        `release` if nothing was started."""
        with self._lock:
            if self._watchdog is None:
                self._watchdog = _start_watchdog(self._token, self._groups)
        return f"{self._token}.{next(self._numbers)}"

    def hold_marker(self) -> str:
        """A marker for many commands: until `end_held`, every process with it is ended when this program
        ends."""
        marker = self.new_marker()
        self.hold(marker)
        return marker

    def hold(self, marker: str) -> None:
        """Ensures that every process with this marker is ended when this program ends."""
        with self._lock:
            self._held.add(marker)

    def end_held(self, marker: str) -> None:
        """Ends every process with this marker, in any group. Takes milliseconds, so call it in a worker
        thread."""
        end_marked(marker.__eq__)
        with self._lock:
            self._held.discard(marker)
        self.release(0)

    def watch(self, pid: int) -> None:
        """Ensures that the process group led by `pid` is ended when this program ends."""
        started = start_of(pid)
        with self._lock:
            self._groups[pid] = started
            self._write_to_watchdog(f"+ {pid} {started}\n")
            self._note(f"+ {pid} {started}\n")

    def release(self, pid: int) -> None:
        """Removes a group that has ended, or (with any other number) a marker with which nothing was
        started."""
        with self._lock:
            self._groups.pop(pid, None)
            if self._groups or self._held:
                self._write_to_watchdog(f"- {pid}\n")
                self._note(f"- {pid}\n")
            else:
                self._stop_watchdog()
                self._drop_pid_file()

    def _write_to_watchdog(self, line: str) -> None:
        for _ in range(2):
            if self._watchdog is None:
                self._watchdog = _start_watchdog(self._token, self._groups)
                return
            if self._watchdog.stdin is None:
                return
            try:
                # Does not block, and a line is short enough to be written completely or not at all.
                os.write(self._watchdog.stdin.fileno(), line.encode())
            except (BrokenPipeError, BlockingIOError):  # it was killed, or is frozen and reads no more
                self._stop_watchdog()
            else:
                return

    def _stop_watchdog(self) -> None:
        process, self._watchdog = self._watchdog, None
        if process is not None and process.stdin is not None:
            # Killed, not asked to end: one that is frozen would not react.
            process.kill()
            process.stdin.close()
            try:
                process.wait(0.02)
            except subprocess.TimeoutExpired:
                threading.Thread(target=process.wait, daemon=True).start()

    def _note(self, line: str) -> None:
        # Without a writable state folder, only the second safeguard is missing.
        with contextlib.suppress(OSError):
            if self._pid_file is None:
                folder = pid_file_dir()
                paths.make_private(folder)
                self._pid_file = folder / f"{os.getpid()}-{start_of(os.getpid())}"
                line = f"boot {_place()}\ntoken {self._token}\n{line}"
            with self._pid_file.open("a") as file:
                file.write(line)

    def _drop_pid_file(self) -> None:
        pid_file, self._pid_file = self._pid_file, None
        if pid_file is not None:
            with contextlib.suppress(OSError):
                pid_file.unlink()

    def forget_after_fork(self) -> None:
        """In a forked child: the servers and the watchdog belong to the parent."""
        if self._watchdog is not None and self._watchdog.stdin is not None:
            with contextlib.suppress(OSError):
                self._watchdog.stdin.close()
        self.__init__()


watchdog = ProcessWatchdog()
run_in_forked_children(watchdog.forget_after_fork)


def _start_watchdog(token: str, groups: Mapping[int, int]) -> subprocess.Popen[bytes] | None:
    listed = "".join(f"+ {group} {started}\n" for group, started in groups.items())
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHDOG_SCRIPT, "dragoman-watchdog", f"{MARKER}={token}."],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin"},
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )
    except OSError:
        return None
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.write(listed.encode())
        os.set_blocking(process.stdin.fileno(), False)
    return process


def pid_file_dir() -> Path:
    return paths.state_dir() / "processes"


def sweep() -> list[int]:
    """Ends processes that crashed hosts have left; returns the groups that were ended."""
    swept: list[int] = []
    try:
        pid_files = list(pid_file_dir().iterdir())
    except OSError:
        return swept
    for pid_file in pid_files:
        with contextlib.suppress(OSError):
            if _host_is_alive(pid_file.name) or not pid_file.is_file():
                continue
            text = _beginning_of(pid_file)
            if _is_of_other_namespace(text):
                continue
            prefix = _prefix_in(text)
            for pid, started in _leftovers(text):
                if _is_ours(pid, started, prefix):
                    with contextlib.suppress(OSError):
                        kill_group(pid)
                        swept.append(pid)
            if prefix:
                end_marked(lambda marker, prefix=prefix: marker.startswith(prefix))
            pid_file.unlink()
    return swept


def _beginning_of(pid_file: Path) -> str:
    """The text up to the limit: a damaged file may be of any size. Servers listed later are found by their
    markers."""
    with pid_file.open("rb") as file:
        return file.read(PID_FILE_LIMIT_BYTES).decode(errors="replace")


def _is_of_other_namespace(text: str) -> bool:
    """Whether the host that wrote the file sees other pids, for example in a container that shares the state
    folder: whether it is alive cannot be known here, and its processes may be visible."""
    place = next((line.split()[1:] for line in text.splitlines() if line.startswith("boot ")), list[str]())
    return place[:1] == [_boot_id()] and place != _place().split()


def _prefix_in(text: str) -> str:
    """The beginning of the markers of the host that wrote the file; empty if that was before the last boot,
    or in another namespace of pids."""
    lines = text.splitlines()
    token = next((line[6:] for line in lines if line.startswith("token ")), "")
    return f"{token}." if _TOKEN.fullmatch(token) and f"boot {_place()}" in lines else ""


def end_marked(is_meant: Callable[[str], bool]) -> None:
    """Kills every process with such a marker in its environment, and repeats until there is none, because
    they may start others meanwhile."""
    for _ in range(_KILL_ROUNDS):
        try:
            found = [
                facts for facts in all_processes() if facts.is_alive and is_meant(marker_of(facts.pid) or "")
            ]
        except OSError:  # no file descriptor is left
            found = None
        if found == []:
            return
        for facts in found or ():
            signal_process(facts.pid, facts.started, KILL)
        time.sleep(_ROUND_SECONDS)


def _host_is_alive(pid_file_name: str) -> bool:
    pid, _, started = pid_file_name.partition("-")
    if not (_NUMBER.fullmatch(pid) and _NUMBER.fullmatch(started)):
        return True  # not one of ours: leave it
    facts = find_process(int(pid))
    return facts is not None and facts.started == int(started) and facts.state != "Z"


def _leftovers(text: str) -> Iterator[tuple[int, int]]:
    """Pid and start time of every listed process that was not marked as ended, since the last boot."""
    started: dict[int, int] = {}
    for line in text.splitlines():
        match line.split():
            case ["boot", *place] if place != _place().split():
                return
            case ["+", pid, ticks] if _NUMBER.fullmatch(pid) and _NUMBER.fullmatch(ticks):
                started[int(pid)] = int(ticks)
            case ["-", pid] if _NUMBER.fullmatch(pid):
                started.pop(int(pid), None)
            case _:
                continue
    yield from started.items()


def _is_ours(pid: int, started: int, prefix: str = "") -> bool:
    """Whether a group is that of the listed process. `prefix`: the beginning of the markers of its host."""
    if pid <= 1:  # for a signal these mean the own process group, or all processes
        return False
    leader = read_process(pid)
    if leader is not None:
        return leader.started == started and leader.group == pid
    # The number may meanwhile be that of another group whose leader has ended.
    members = group_members(pid, since=started) if prefix else []
    return any((marker_of(member) or "").startswith(prefix) for member in members)


def _place() -> str:
    """This boot and this namespace of pids: elsewhere, the same numbers are other processes."""
    try:
        return f"{_boot_id()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return _boot_id()


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"
