"""What a `headersHelper` may print, what it is told, and when it runs."""

import asyncio
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.auth import headers_helper as helper
from dragoman.auth.headers_helper import BadHeaders, HeadersHelper, facts, read_headers
from dragoman.credentials import Challenge
from dragoman.errors import SignInNeeded

pytestmark = pytest.mark.requirement("AUT-9")

CANARY = "s3cr3t-canary-value"
PATH = {"PATH": "/usr/bin:/bin"}


class Guard:
    """Notes which process groups are watched."""

    def __init__(self) -> None:
        self.watched: list[int] = []
        self.released: list[int] = []

    def watch(self, pid: int) -> None:
        self.watched.append(pid)

    def release(self, pid: int) -> None:
        self.released.append(pid)


def helping(command: str, folder: Path, **options: Any) -> HeadersHelper:
    env: Mapping[str, str] = options.pop("env", PATH)
    guard = options.pop("guard", Guard())
    env = {**env, **facts("box", "https://box/mcp")}
    return HeadersHelper("box", command, env=env, cwd=str(folder), watchdog=guard)


def printing(document: object) -> str:
    return f"printf %s {shlex.quote(json.dumps(document))}"


# --- what it may print ---


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"Authorization": f"Bearer {CANARY}"},
        {"X-Api-Key": "a", "Cookie": "session=1; other=2", "x.y!z": ""},
        {"X-Tab": "a\tb", "X-Name": "Jörg"},
        {f"X-{number}": "v" for number in range(helper.HEADER_LIMIT)},
        {"Authorization": "Negotiate " + "A" * 48_000},
    ],
    ids=lambda found: f"{len(found)} headers",
)
def test_headers_are_read_from_the_output(found: dict[str, str]):
    assert read_headers(b" \n" + json.dumps(found).encode() + b"\n") == found


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (b"", "printed nothing"),
        (b" \n", "printed nothing"),
        (CANARY.encode(), "one JSON object of texts"),
        (b"Authorization: Bearer " + CANARY.encode(), "one JSON object of texts"),
        (b'{"Authorization": "Bearer ' + CANARY.encode(), "one JSON object of texts"),
        (b'{"A": "b"} {"C": "d"}', "one JSON object of texts"),
        (b'["Authorization"]', "one JSON object of texts"),
        (b'"Authorization"', "one JSON object of texts"),
        (b"null", "one JSON object of texts"),
        (b'{"A": 1}', "one JSON object of texts"),
        (b'{"A": null}', "one JSON object of texts"),
        (b'{"A": ["b"]}', "one JSON object of texts"),
        (b'{"headers": {"A": "b"}}', "one JSON object of texts"),
        (b'{"A": "\xff"}', "one JSON object of texts"),
        (b'{"A": "\\ud800"}', "one JSON object of texts"),
        (b"[" * 100_000, "one JSON object of texts"),
        (json.dumps({f"X-{n}": "v" for n in range(65)}).encode(), "more than 64 headers"),
        (b'{"authorization": "a", "Authorization": "b"}', "one header twice"),
        (b'{"": "a"}', "name is not one word"),
        (b'{"X Y": "a"}', "name is not one word"),
        (b'{"X:Y": "a"}', "name is not one word"),
        (b'{"X\\r\\nEvil": "a"}', "name is not one word"),
        ('{"X-É": "a"}'.encode(), "name is not one word"),
        (json.dumps({"X" * 300: "a"}).encode(), "name is not one word"),
        (json.dumps({"A": "b\r\nEvil: 1"}).encode(), "line break"),
        (json.dumps({"A": f"{CANARY}\n"}).encode(), "line break"),
        (json.dumps({"A": "b\rc"}).encode(), "line break"),
        (json.dumps({"A": "b\0c"}).encode(), "line break"),
        (json.dumps({"A": "\x1b[2J"}).encode(), "control character"),
        (json.dumps({"A": "\x85"}).encode(), "control character"),
        (json.dumps({"A": "x" * 65_537}).encode(), "more than 64 kB"),
        (json.dumps({"A": "é" * 40_000}).encode(), "more than 64 kB"),
    ],
    ids=lambda value: repr(value[:40]),
)
def test_headers_that_cannot_be_sent_are_refused_without_showing_them(output: bytes, why: str):
    with pytest.raises(BadHeaders, match=why) as caught:
        read_headers(output)
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "name",
    [
        *("Host", "host", "CONTENT-LENGTH", "Content-Type", "Transfer-Encoding", "Connection", "Upgrade"),
        *("Mcp-Session-Id", "MCP-Protocol-Version", "mcp-method", "Mcp-Param-Region", "Last-Event-ID"),
        *("Sec-WebSocket-Key", "sec-websocket-protocol", "Proxy-Authorization", "Accept", "TE", "Expect"),
    ],
)
def test_a_helper_cannot_set_a_header_of_the_transport(name: str):
    with pytest.raises(BadHeaders, match="a helper must not set"):
        read_headers(json.dumps({"Authorization": "x", name: "y"}).encode())


@given(st.binary(max_size=300))
def test_any_output_gives_headers_or_a_reason(output: bytes):
    try:
        found = read_headers(output)
    except BadHeaders:
        return
    assert all(name.isascii() and not set(value) & set("\r\n\0") for name, value in found.items())


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=5))
def test_no_output_sets_a_line_break_or_a_header_of_the_transport(document: dict[str, str]):
    try:
        found = read_headers(json.dumps(document).encode())
    except BadHeaders:
        return
    for name, value in found.items():
        line = f"{name}: {value}"
        assert len(line.splitlines()) == 1 or not set(line) & set("\r\n\0\v\f\x1c\x1d\x1e\x85")
        assert name.lower() not in helper.RESERVED_HEADERS


# --- what it is told ---


def test_the_helper_gets_the_server_in_dragomans_and_the_usual_variables():
    assert facts("box", "https://box/mcp") == {
        "DRAGOMAN_SERVER_NAME": "box",
        "DRAGOMAN_SERVER_URL": "https://box/mcp",
        "CLAUDE_CODE_MCP_SERVER_NAME": "box",
        "CLAUDE_CODE_MCP_SERVER_URL": "https://box/mcp",
    }


async def test_the_helper_gets_only_these_variables_and_its_folder(tmp_path: Path):
    entry = {**PATH, "OWN": "x"}
    command = f"env > {shlex.quote(str(tmp_path))}/seen; pwd > folder; {printing({'A': 'b'})}"

    assert await helping(command, tmp_path, env=entry).headers() == {"A": "b"}

    lines = (tmp_path / "seen").read_text().splitlines()
    seen = dict(line.split("=", 1) for line in lines)
    for added in ("PWD", "OLDPWD", "SHLVL", "_"):  # the shell's own
        seen.pop(added, None)
    assert seen == {**entry, **facts("box", "https://box/mcp")}
    assert (tmp_path / "folder").read_text().strip() == str(tmp_path.resolve())


async def test_the_helper_has_no_stdin_and_its_stderr_is_not_output(tmp_path: Path):
    command = f'test -z "$(cat)" && echo {CANARY} >&2 && {printing({"A": "b"})}'
    assert await helping(command, tmp_path).headers() == {"A": "b"}


# --- when it runs ---


def counting(folder: Path, more: str = "") -> str:
    """Prints how often it has run."""
    return f'echo x >> runs; {more} printf \'{{"A": "%s"}}\' "$(wc -l < runs | tr -d " ")"'


async def test_the_helper_runs_once_and_again_after_a_refusal(tmp_path: Path):
    one = helping(counting(tmp_path), tmp_path)

    given: list[str] = []
    for refusal in (None, None, Challenge(401), None):
        if refusal is not None:
            assert await one.renew(refusal)
        given.append((await one.headers())["A"])

    assert given == ["1", "1", "2", "2"]


async def test_the_helper_does_not_run_again_after_insufficient_scope(tmp_path: Path):
    one = helping(counting(tmp_path), tmp_path)
    await one.headers()

    assert not await one.renew(Challenge(403, ('Bearer error="insufficient_scope"',)))

    assert await one.headers() == {"A": "1"}


async def test_concurrent_requests_share_the_first_run(tmp_path: Path):
    one = helping(counting(tmp_path, "sleep 0.1;"), tmp_path)

    given = await asyncio.gather(*(one.headers() for _ in range(20)))

    assert given == [{"A": "1"}] * 20


async def test_refused_headers_are_not_used_again_after_a_failure(tmp_path: Path):
    once = f"test -e there && exit 1; touch there; {printing({'A': 'b'})}"
    one = helping(once, tmp_path)
    await one.headers()
    with pytest.raises(SignInNeeded):
        await one.renew(Challenge(401))
    with pytest.raises(SignInNeeded):
        await one.headers()


# --- how it fails ---


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        (f"echo {CANARY}; exit 3", "its headersHelper ended with exit code 3"),
        (f"echo {CANARY} >&2; exit 1", "its headersHelper ended with exit code 1"),
        ("kill -9 $$", "its headersHelper was ended by signal 9"),
        (f"no-such-program-{CANARY}", "was not found or cannot be run (exit code 127)"),
        (f"echo {CANARY}", "did not print one JSON object of texts"),
        ("true", "printed nothing"),
        ("yes", "printed more than 256 kB"),
        ("bad\0command", "could not be started"),
    ],
    ids=lambda value: value[:30].replace("\0", "NUL"),
)
async def test_a_failure_names_server_phase_cause_and_next_step_and_not_the_output(
    tmp_path: Path, command: str, cause: str
):
    guard = Guard()
    with pytest.raises(SignInNeeded) as caught:
        await helping(command, tmp_path, guard=guard).headers()
    error = caught.value
    assert (error.server, error.phase) == ("box", "connect")
    assert cause in str(error)
    assert "by hand" in (error.hint or "")
    assert CANARY not in f"{error} {error!r} {error.hint} {vars(error)}"
    assert guard.watched == guard.released


async def test_a_missing_folder_is_reported(tmp_path: Path):
    with pytest.raises(SignInNeeded, match="could not be started: no such file"):
        await helping("true", tmp_path / "gone").headers()


async def test_a_helper_that_hangs_is_ended_at_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(helper, "LIMIT_SECONDS", 0.2)
    async with asyncio.timeout(5):
        with pytest.raises(SignInNeeded, match=r"did not end within 0\.2 s"):
            await helping("sleep 60", tmp_path).headers()


def test_the_time_limit_of_a_helper_is_ten_seconds():
    assert helper.LIMIT_SECONDS == 10


def test_neither_command_nor_environment_is_in_its_repr(tmp_path: Path):
    assert CANARY not in repr(helping(f"echo {CANARY}", tmp_path, env={"TOKEN": CANARY}))
