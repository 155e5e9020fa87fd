"""The audit log: each call once and whole, for its owner alone; no trouble with it stops a call."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host, PermissionAnswer
from dragoman.calls import audit
from dragoman.calls.audit import FILE, TEXT_LIMIT, AuditEntry, AuditLog, files, read
from dragoman.errors import HostClosed
from dragoman.events import ConfigurationChanged
from dragoman.testing import InMemoryServer, ScriptedUser

pytestmark = pytest.mark.requirement("PRM-6")

CANARY = "canary-5f1c-do-not-write"
Report = list[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "logs"


def log_in(folder: Path, report: Report | None = None, session: str = "s1") -> AuditLog:
    return AuditLog(folder, ([] if report is None else report).append, session)


def write(
    log: AuditLog, tool: str = "mcp__s__t", arguments: dict[Any, Any] | None = None, **more: Any
) -> None:
    log.write(AuditEntry(tool=tool, **more), arguments or {}, 1_700_000_000.1234)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in files(folder) for line in file.read_text().splitlines()]


# --- what is in it ---


def test_an_entry_contains_the_call_the_decision_and_the_outcome(folder: Path):
    log = log_in(folder)
    write(log, arguments={"path": CANARY}, server="s", decision="allow", by="rule", reason="r", outcome="ok")
    log.close()

    assert lines(folder) == [
        {
            "time": "2023-11-14T22:13:20.123Z",
            "session": "s1",
            "pid": os.getpid(),
            "server": "s",
            "tool": "mcp__s__t",
            "arguments": ["path"],
            "decision": "allow",
            "by": "rule",
            "reason": "r",
            "outcome": "ok",
        }
    ]


@pytest.mark.requirement("AUT-11")
def test_values_of_arguments_are_never_written_however_deep(folder: Path):
    log = log_in(folder)
    write(log, arguments={"a": CANARY, "b": {CANARY: [CANARY]}, "c": [[CANARY]]})
    log.close()

    assert CANARY not in (folder / FILE).read_text()
    assert lines(folder)[0]["arguments"] == ["a", "b", "c"]


HOSTILE_TEXTS = {
    "a lone surrogate": "\ud800",
    "line ends": "a\nb\r\nc\u2028d",
    "escapes": "\x1b[2J\x9b31m\x07\x00",
    "something endless": "x" * 1_000_000,
    "hidden": "\u202e\u200b\U000e0041",
}


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS.keys())
@pytest.mark.parametrize("place", ["tool", "argument", "reason", "rule", "server"])
def test_hostile_text_is_one_short_line_and_the_next_entry_is_written_too(
    folder: Path, text: str, place: str
):
    log = log_in(folder, told := [])
    if place == "argument":
        write(log, arguments={text: 1})
    else:
        write(log, **{"tool": "t", place: text})
    write(log, "the next")
    log.close()

    first, second = (folder / FILE).read_bytes().splitlines()
    assert len(first) < 2 * TEXT_LIMIT
    assert not any(byte < 0x20 or byte == 0x7F for byte in first)
    assert b"\xc2\x9b" not in first
    assert json.loads(second)["tool"] == "the next"
    assert told == []


def test_many_arguments_and_names_that_are_not_strings_are_logged(folder: Path):
    log = log_in(folder)
    write(log, arguments=dict.fromkeys(range(100_000)))
    log.close()

    (entry,) = lines(folder)
    assert entry["arguments"] == [str(number) for number in range(audit.ARGUMENT_LIMIT)]


# --- its file ---


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_file_and_folder_are_for_their_owner_alone(tmp_path: Path, umask: int):
    before = os.umask(umask)
    try:
        log = log_in(tmp_path / "a" / "logs")
        write(log)
        log.close()
    finally:
        os.umask(before)

    for path, mode in ((log.path, 0o600), (log.path.parent, 0o700), (tmp_path / "a", 0o700)):
        assert path.stat().st_mode & 0o777 == mode


def test_a_file_that_others_could_read_is_made_private(folder: Path):
    folder.mkdir(mode=0o700)
    (folder / FILE).write_text("")
    (folder / FILE).chmod(0o666)
    log = log_in(folder)
    write(log)
    log.close()

    assert (folder / FILE).stat().st_mode & 0o777 == 0o600


def _link(place: Path) -> None:
    (place.parent / "elsewhere").write_text("untouched")
    place.symlink_to(place.parent / "elsewhere")


OBSTACLES: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
    "a link": (_link, Path.unlink),
    "a link to nothing": (lambda place: place.symlink_to(place.parent / "nowhere"), Path.unlink),
    "a folder": (lambda place: place.mkdir(), Path.rmdir),
    "a pipe": (lambda place: os.mkfifo(place), Path.unlink),
}


@pytest.mark.parametrize(("put", "take"), OBSTACLES.values(), ids=OBSTACLES.keys())
def test_a_link_or_folder_in_place_of_the_file_is_reported_once_and_not_followed(
    folder: Path, put: Callable[[Path], object], take: Callable[[Path], object]
):
    folder.mkdir(mode=0o700)
    put(folder / FILE)
    log = log_in(folder, told := [])
    for number in range(5):
        write(log, str(number))
        _drain(log)
    assert len(told) == 1
    assert str(folder / FILE) in told[0]

    take(folder / FILE)
    write(log, "later")
    _drain(log)
    written = [entry["tool"] for entry in lines(folder)]
    assert written == ["0", "1", "2", "3", "4", "later"], "no entry is lost"
    (folder / FILE).unlink()
    put(folder / FILE)
    write(log, "again")
    log.close()
    assert len(told) == 2, "a new failure is reported again"
    elsewhere = folder / "elsewhere"
    assert not elsewhere.exists() or elsewhere.read_text() == "untouched"


def _drain(log: AuditLog) -> None:
    """Waits until everything so far was tried."""
    log.close()
    log._is_closed = False


def test_a_folder_that_cannot_be_created_is_reported_once(tmp_path: Path):
    (tmp_path / "file").write_text("")
    log = log_in(tmp_path / "file" / "logs", told := [])
    for _ in range(100):
        write(log)
    log.close()

    assert len(told) == 1


def test_a_full_disk_is_reported_once(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(audit.os, "write", lambda descriptor, data: len(data) // 2)
    log = log_in(folder, told := [])
    write(log)
    log.close()
    monkeypatch.undo()

    assert len(told) == 1
    assert "No space left" in told[0]


# --- many of them ---

WRITER = """
import os, sys
from pathlib import Path
from dragoman.calls import audit

def told(problem):
    print(problem, file=sys.stderr, flush=True)
    os._exit(1)  # from the thread that writes

audit.FILE_LIMIT_BYTES = int(sys.argv[3])
log = audit.AuditLog(Path(sys.argv[1]), told, sys.argv[2])
for number in range(int(sys.argv[4])):
    log.write(audit.AuditEntry(tool=f"{sys.argv[2]} {number}", reason="x" * 200), {"a": 1}, 0.0)
log.close()
"""


def written_by_many(folder: Path, *, limit_bytes: int, writers: int = 6, each: int = 2000) -> None:
    words = [sys.executable, "-c", WRITER, str(folder)]
    processes = [
        subprocess.Popen([*words, f"w{number}", str(limit_bytes), str(each)], stderr=subprocess.PIPE)
        for number in range(writers)
    ]
    for process in processes:
        _, problems = process.communicate(timeout=60)
        assert (process.returncode, problems) == (0, b"")


@pytest.mark.slow
def test_entries_of_several_processes_do_not_mix_and_keep_their_order(folder: Path):
    written_by_many(folder, limit_bytes=1 << 40)

    found = lines(folder)
    for writer in range(6):
        mine = [entry["tool"] for entry in found if entry["session"] == f"w{writer}"]
        assert mine == [f"w{writer} {number}" for number in range(2000)]


@pytest.mark.slow
def test_a_full_file_is_rotated_during_concurrent_writes_without_loss(folder: Path):
    # Six files' worth: fewer than are kept.
    written_by_many(folder, limit_bytes=800_000)

    found = [entry["tool"] for entry in lines(folder)]
    assert len(found) == len(set(found)) == 6 * 2000
    # At least one made way: how many lines a writer writes at a time depends on the machine.
    assert 2 <= len(list(files(folder))) <= audit.FILES_KEPT
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.iterdir())


def test_the_number_of_rotated_files_is_limited_and_the_oldest_is_deleted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(audit, "FILE_LIMIT_BYTES", 100)
    for number in range(20):
        log = log_in(folder)
        write(log, f"call {number}")
        log.close()

    kept = [entry["tool"] for entry in read(folder)]
    assert len(list(files(folder))) <= audit.FILES_KEPT
    assert kept == [f"call {number}" for number in range(20 - len(kept), 20)], "oldest first, without a gap"
    assert len(kept) >= audit.FILES_KEPT - 1


def test_lines_that_cannot_be_read_are_skipped(folder: Path):
    log = log_in(folder)
    write(log, "one")
    log.close()
    with (folder / FILE).open("ab") as file:
        file.write(b'\xff\xfe\n[1]\n"x"\n{"tool": "half\n' + b"[" * 100_000 + b"\n\n")
    log = log_in(folder)
    write(log, "two")
    log.close()
    os.mkfifo(folder / "audit.3.jsonl")

    assert [entry["tool"] for entry in read(folder)] == ["one", "two"]


# --- in a host ---


def server(run: Callable[..., Any] = lambda arguments, context: "done") -> InMemoryServer:
    made = InMemoryServer("s")
    made.add_tool("t", run)
    return made


def kept(home: Path) -> list[dict[str, Any]]:
    return list(read(home / ".dragoman" / "logs"))


async def test_every_end_of_a_call_is_written(home: Path):
    user = ScriptedUser(True, False)
    async with Host({"s": server()}, interaction=user, audit=True) as host:
        await host.ready()
        await host.call("mcp__s__t", {"key": CANARY})
        await host.call("mcp__s__t", {"key": CANARY})
        await host.call("mcp__s__none", {})
        await host.call("mcp__s__t", {1: 2})  # pyright: ignore[reportArgumentType]

    ends = [(entry.get("decision", "none"), entry["outcome"]) for entry in kept(home)]
    assert ends[:3] == [("allow", "ok"), ("deny", "refused"), ("none", "unknown-tool")]
    assert len(ends) == 4
    assert CANARY not in (home / ".dragoman" / "logs" / FILE).read_text()


@pytest.mark.parametrize("when", ["while it runs", "while it is asked about"])
async def test_a_cancelled_call_is_written_as_one(home: Path, when: str):
    reached = asyncio.Event()

    async def wait(*_: Any) -> Any:
        reached.set()
        await asyncio.Event().wait()

    class Slow:
        allow = staticmethod(wait)

    user: Any = Slow() if "asked" in when else ScriptedUser(True)
    async with Host({"s": server(wait)}, interaction=user, audit=True) as host:
        await host.ready()
        call = asyncio.create_task(host.call("mcp__s__t", {}))
        await asyncio.wait_for(reached.wait(), 10)
        call.cancel()
        await asyncio.wait([call])

    (entry,) = kept(home)
    assert entry["outcome"] == "cancelled"
    assert entry.get("decision", "none") == ("none" if "asked" in when else "allow")


async def test_no_entry_is_lost_when_the_host_closes_during_calls(home: Path):
    reached = asyncio.Semaphore(0)

    async def wait(*_: Any) -> Any:
        reached.release()
        await asyncio.Event().wait()

    host = Host({"s": server(wait)}, permission_mode="bypassPermissions", audit=True)
    async with host:
        await host.ready()
        calls = [asyncio.create_task(host.call("mcp__s__t", {})) for _ in range(50)]
        for _ in calls:
            await asyncio.wait_for(reached.acquire(), 10)
    await asyncio.wait(calls, timeout=10)

    assert all(call.done() and call.exception() is not None for call in calls)
    assert [entry["outcome"] for entry in kept(home)] == ["connection-lost"] * 50
    with pytest.raises(HostClosed):
        await host.call("mcp__s__t", {})


async def test_a_call_that_ends_after_its_host_is_written(home: Path):
    asked, answer = asyncio.Event(), asyncio.Event()

    class Slow:
        async def allow(self, question: Any) -> PermissionAnswer:
            asked.set()
            await answer.wait()
            return PermissionAnswer(False)

    async with Host({"s": server()}, interaction=Slow(), audit=True) as host:
        await host.ready()
        call = asyncio.create_task(host.call("mcp__s__t", {}))
        await asyncio.wait_for(asked.wait(), 10)
    answer.set()
    await asyncio.wait([call], timeout=10)

    assert isinstance(call.exception(), HostClosed)
    assert len(kept(home)) == 1, "there when the call has ended, without waiting"


async def test_a_log_that_cannot_be_written_is_one_event_and_calls_continue(home: Path):
    (home / ".dragoman").mkdir()
    (home / ".dragoman" / "logs").write_text("in the way")
    async with Host({"s": server()}, permission_mode="bypassPermissions", audit=True) as host:
        await host.ready()
        events = host.events()
        for _ in range(10):
            assert (await host.call("mcp__s__t", {})).text == "done"

        async def told() -> ConfigurationChanged:
            async for event in events:
                if isinstance(event, ConfigurationChanged):
                    return event
            raise AssertionError("never told")

        event = await asyncio.wait_for(told(), 5)  # woken, though the trouble is another thread's
    assert "audit log" in event.problems[0]
    later = [event async for event in events if isinstance(event, ConfigurationChanged)]
    assert later == []


async def test_without_the_setting_no_log_is_written(home: Path):
    async with Host({"s": server()}, permission_mode="bypassPermissions") as host:
        await host.ready()
        await host.call("mcp__s__t", {})

    assert not (home / ".dragoman" / "logs").exists()
