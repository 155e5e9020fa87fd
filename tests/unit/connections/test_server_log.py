"""The log of a server: limits, and what becomes of lines beyond them."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.connections import server_log
from dragoman.connections.server_log import LINES_PER_SECOND, ServerLog, ServerLogs, at_least, path_of, read
from dragoman.connections.state import ServerState, in_words

pytestmark = pytest.mark.requirement("ASK-6")


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def logs(tmp_path: Path, told: list[str]) -> ServerLogs:
    return ServerLogs(told.append, tmp_path)


@pytest.fixture(autouse=True)
def still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """All lines come in the same second."""
    monkeypatch.setattr(server_log.time, "monotonic", lambda: 1000.0)


def as_it_is(text: str) -> str:
    return text


def texts(folder: Path) -> list[str]:
    return [line["text"] for line in read(path_of("s", folder))]


def test_a_flood_is_cut_off_and_the_number_of_lost_lines_is_recorded(logs: ServerLogs, tmp_path: Path):
    log = logs.of("s", as_it_is)
    for number in range(LINES_PER_SECOND + 70):
        log.write("message", "info", str(number))
    logs.close()
    *kept, note = texts(tmp_path)
    assert kept == [str(number) for number in range(LINES_PER_SECOND)]
    assert note == "70 lines before this one were dropped: there were too many"


def test_a_flood_of_one_server_does_not_reduce_the_limit_of_another(logs: ServerLogs, tmp_path: Path):
    log, other = logs.of("s", as_it_is), logs.of("other", as_it_is)
    for _ in range(10 * LINES_PER_SECOND):
        log.write("message", "info", "x")
    other.write("message", "info", "here")
    logs.close()
    assert [line["text"] for line in read(path_of("other", tmp_path))] == ["here"]


def test_the_limit_is_reset_each_second(logs: ServerLogs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = logs.of("s", as_it_is)
    for _ in range(LINES_PER_SECOND + 1):
        log.write("message", "info", "x")
    assert not log.has_room()
    monkeypatch.setattr(server_log.time, "monotonic", lambda: 1001.0)
    assert log.has_room()
    logs.close()


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([b"one\ntwo\n"], ["one", "two"]),
        ([b"o", b"n", b"e\nt", b"wo\n"], ["one", "two"]),
        ([b"one\r\n\n   \ntwo"], ["one", "two"]),
        ([b"\xff\xfe\n"], ["\ufffd\ufffd"]),
        ([b"x" * 100_000, b"\nshort\n"], ["x" * 4096 + "… [4121 more characters]", "short"]),
    ],
    ids=["lines", "pieces", "blank lines and no end", "no UTF-8", "a line without end"],
)
def test_stderr_is_divided_into_lines(
    logs: ServerLogs, tmp_path: Path, chunks: list[bytes], expected: list[str]
):
    log = logs.of("s", as_it_is)
    for chunk in chunks:
        log.write_stderr(chunk)
    log.end_stderr()
    logs.close()
    assert texts(tmp_path) == expected


def test_a_flood_on_stderr_uses_no_memory(logs: ServerLogs, tmp_path: Path):
    log = logs.of("s", as_it_is)
    for _ in range(100):
        log.write_stderr(b"y\n" * 10_000)
    logs.close()
    *kept, note = texts(tmp_path)
    assert kept == ["y"] * LINES_PER_SECOND
    assert note == f"{1_000_000 - LINES_PER_SECOND} lines before this one were dropped: there were too many"


def test_files_are_limited_in_size_and_number(
    logs: ServerLogs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(server_log, "FILE_LIMIT_BYTES", 200)
    log: ServerLog = logs.of("s", as_it_is)
    for number in range(21):
        log.write_lines([server_log.LogLine("t", "info", "message", f"{number} {'x' * 100}")])
    found = sorted(path.name for path in (tmp_path / "servers").glob("*.jsonl"))
    assert len(found) == server_log.FILES_KEPT
    assert texts(tmp_path)[-1].startswith("20 ")


@pytest.mark.parametrize("obstacle", ["a folder", "a link"])
def test_a_log_that_cannot_be_written_is_reported_once(
    logs: ServerLogs, tmp_path: Path, told: list[str], obstacle: str
):
    path = path_of("s", tmp_path)
    path.parent.mkdir(parents=True)
    if obstacle == "a folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")
    log = logs.of("s", as_it_is)
    for _ in range(3):
        log.write("message", "info", "x")
        logs.close()
    assert len(told) == 1
    assert told[0].startswith(f"the server log {path} cannot be written: ")
    assert not (tmp_path / "elsewhere").exists()


def test_server_names_cannot_lead_outside_the_folder(tmp_path: Path):
    names = ["../../etc/passwd", "a/b", "a_b", "A B", "", "." * 300]
    paths = [path_of(name, tmp_path) for name in names]
    assert {path.parent for path in paths} == {tmp_path / "servers"}
    assert len({path.name for path in paths}) == len(names)


def test_a_minimum_level_keeps_that_level_and_more_severe_ones():
    lines: list[dict[str, Any]] = [{"level": level} for level in ("debug", "warning", "alert", "odd")]
    assert [line["level"] for line in at_least("warning", lines)] == ["warning", "alert"]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (ServerState("pending", "connecting", attempt=1), ("info", "connecting")),
        (ServerState("connected"), ("info", "connected")),
        (ServerState("failed", None, "no such file"), ("error", "failed: no such file")),
        (ServerState("needs-auth", None, "401"), ("warning", "needs-auth: 401")),
        (
            ServerState("pending", "reconnecting", "it ended", attempt=2),
            ("warning", "reconnecting (attempt 2): it ended"),
        ),
        (ServerState("disabled", None, "by the person"), ("info", "disabled: by the person")),
        (ServerState("disabled", None, "the connection was closed"), ("info", "closed")),
    ],
)
def test_server_states_in_messages(state: ServerState, expected: tuple[str, str]):
    assert in_words(state) == expected
