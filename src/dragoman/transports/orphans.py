"""No server outlives the host that started it.

I own: two safeguards for the case that this program dies without closing its servers.
The *warden* is a tiny shell that holds the read end of a pipe: when this program ends, however it
ends, the pipe closes and the warden ends every process group still listed. The kernel's own
parent-death signal reaches only the direct child and not its children, and is tied to the thread
that forked; the warden reaches the group.
The *ledger* is a file that lists what was started (pid, start time, group): should the warden be
killed as well, the next start finds the file and sweeps what is left. A process is only ever
touched if its start time or session shows that it is the one that was listed.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from dragoman import paths

_WARDEN_SCRIPT: Final = """
groups=
while read -r op group; do
  case $op in
    +) groups="$groups $group" ;;
    -) kept=; for g in $groups; do [ "$g" = "$group" ] || kept="$kept $g"; done; groups=$kept ;;
  esac
done
[ -n "$groups" ] || exit 0
for s in INT TERM KILL; do
  for g in $groups; do kill -s $s -- "-$g" 2>/dev/null; done
  sleep 0.3
done
"""


_NUMBER: Final = re.compile(r"[0-9]{1,18}")


class ProcessFacts(NamedTuple):
    pid: int
    state: str
    parent: int
    group: int
    session: int
    started: int
    """Clock ticks between boot and the start of the process."""


class Guard:
    """Both safeguards, for all servers this program starts, on whichever thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._warden: subprocess.Popen[bytes] | None = None
        self._ledger: Path | None = None

    def watch(self, pid: int) -> None:
        """From now on the process group led by `pid` ends with this program."""
        facts = read_process(pid)
        with self._lock:
            self._groups.add(pid)
            self._tell_warden(f"+ {pid}\n")
            self._note(f"+ {pid} {facts.started if facts else 0}\n")

    def release(self, pid: int) -> None:
        """The group is gone."""
        with self._lock:
            self._groups.discard(pid)
            self._tell_warden(f"- {pid}\n")
            if self._groups:
                self._note(f"- {pid}\n")
            else:
                self._stop_warden()
                self._drop_ledger()

    def _tell_warden(self, line: str) -> None:
        for _ in range(2):
            if self._warden is None:
                line = "".join(f"+ {group}\n" for group in self._groups)
                self._warden = _start_warden()
            if self._warden is None or self._warden.stdin is None:
                return
            try:
                os.write(self._warden.stdin.fileno(), line.encode())
            except BrokenPipeError:
                self._stop_warden()
            else:
                return

    def _stop_warden(self) -> None:
        warden, self._warden = self._warden, None
        if warden is not None and warden.stdin is not None:
            warden.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                warden.wait(0.5)

    def _note(self, line: str) -> None:
        # A state folder that cannot be written costs the second safeguard, not the server.
        with contextlib.suppress(OSError):
            if self._ledger is None:
                folder = ledger_dir()
                paths.make_private(folder)
                me = read_process(os.getpid())
                self._ledger = folder / f"{os.getpid()}-{me.started if me else 0}"
                line = f"boot {_boot_id()}\n{line}"
            with self._ledger.open("a") as file:
                file.write(line)

    def _drop_ledger(self) -> None:
        ledger, self._ledger = self._ledger, None
        if ledger is not None:
            with contextlib.suppress(OSError):
                ledger.unlink()

    def forget_after_fork(self) -> None:
        """In a forked child: the servers and the warden belong to the parent."""
        if self._warden is not None and self._warden.stdin is not None:
            with contextlib.suppress(OSError):
                os.close(self._warden.stdin.fileno())
        self.__init__()


guard = Guard()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=guard.forget_after_fork)


def _start_warden() -> subprocess.Popen[bytes] | None:
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", _WARDEN_SCRIPT, "dragoman-warden"],
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


def ledger_dir() -> Path:
    return paths.state_dir() / "processes"


def sweep() -> list[int]:
    """Ends what hosts that died left behind; returns the groups that were ended."""
    swept: list[int] = []
    try:
        ledgers = list(ledger_dir().iterdir())
    except OSError:
        return swept
    for ledger in ledgers:
        if _host_is_alive(ledger.name):
            continue
        with contextlib.suppress(OSError):
            for pid, started in _leftovers(ledger.read_text(errors="replace")):
                if _is_ours(pid, started):
                    with contextlib.suppress(OSError):
                        os.killpg(pid, signal.SIGKILL)
                        swept.append(pid)
            ledger.unlink()
    return swept


def _host_is_alive(ledger_name: str) -> bool:
    pid, _, started = ledger_name.partition("-")
    if not (_NUMBER.fullmatch(pid) and _NUMBER.fullmatch(started)):
        return True  # not one of ours: leave it
    facts = read_process(int(pid))
    return facts is not None and facts.started == int(started) and facts.state != "Z"


def _leftovers(text: str) -> Iterator[tuple[int, int]]:
    """Pid and start time of every listed process that was not crossed out, in this boot."""
    started: dict[int, int] = {}
    for line in text.splitlines():
        match line.split():
            case ["boot", boot] if boot != _boot_id():
                return
            case ["+", pid, ticks] if _NUMBER.fullmatch(pid) and _NUMBER.fullmatch(ticks):
                started[int(pid)] = int(ticks)
            case ["-", pid] if _NUMBER.fullmatch(pid):
                started.pop(int(pid), None)
            case _:
                continue
    yield from started.items()


def _is_ours(pid: int, started: int) -> bool:
    if pid <= 1:  # to a signal these mean our own group, or everybody
        return False
    leader = read_process(pid)
    if leader is not None:
        return leader.started == started and leader.group == pid
    return bool(group_members(pid, since=started))


def group_members(group: int, since: int = 0) -> list[int]:
    """Living processes of a group whose session it also leads. Empty where there is no /proc."""
    return [
        facts.pid
        for facts in _all_processes()
        if facts.group == group
        and facts.session == group
        and facts.started >= since
        and facts.state not in "ZX"
    ]


def escapees(leader: int) -> list[ProcessFacts]:
    """Descendants of a process that left its group but not its family. Empty where there is no /proc.

    A daemon that forks twice has left both, and cannot be seen from here.
    """
    children = _families(int(time.monotonic() * 10))
    found: list[ProcessFacts] = []
    generation = children.get(leader, [])
    while generation:
        found += [facts for facts in generation if facts.group != leader]
        generation = [child for facts in generation for child in children.get(facts.pid, [])]
    return found


@lru_cache(maxsize=1)
def _families(tenth_of_a_second: int) -> dict[int, list[ProcessFacts]]:
    """Processes by parent. When many servers end at once, they share one look."""
    children: dict[int, list[ProcessFacts]] = {}
    for facts in _all_processes():
        children.setdefault(facts.parent, []).append(facts)
    return children


def is_alive(facts: ProcessFacts) -> bool:
    now = read_process(facts.pid)
    return now is not None and now.started == facts.started and now.state not in "ZX"


def _all_processes() -> Iterator[ProcessFacts]:
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit() and (facts := read_process(int(name))) is not None:
                yield facts


def read_process(pid: int) -> ProcessFacts | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return _read_process_with_ps(pid) if not os.path.exists("/proc/self/stat") else None
    # The program's name stands in parentheses and may contain anything, parentheses included.
    fields = text[text.rindex(b")") + 2 :].split()
    return ProcessFacts(
        pid, fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19])
    )


def _read_process_with_ps(pid: int) -> ProcessFacts | None:
    """The same facts where there is no /proc; the start time is then a number made from its text."""
    command = ["ps", "-o", "stat=,pgid=,sess=,lstart=", "-p", str(pid)]
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


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"
