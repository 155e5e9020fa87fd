"""T232: a state folder that cannot be written, a full disk, a damaged or locked store, files of other
users, a changed clock: the gateway reports it or continues, and never admits anyone without a token."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from dragoman import paths
from dragoman.cli import exit_codes, gateway_clients
from dragoman.cli.gateway_clients import generated_token
from dragoman.errors import ConfigError
from dragoman.gateway.store import sqlite
from dragoman.gateway.store.sqlite import SqliteStore
from tests.e2e.forked import run
from tests.e2e.test_serve import OPEN, InstalledServing
from tests.gateway import ADA, Client, gateway_of
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-3")


def garbage(path: Path) -> object:
    path.write_bytes(b"no database" * 1000)
    return None


def folder(path: Path) -> object:
    path.mkdir()
    return None


def locked(path: Path) -> object:
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("create table entries (key text)")
    holder.execute("begin exclusive")
    return holder


def other_table(path: Path) -> object:
    with sqlite3.connect(path) as other:
        other.execute("create table entries (something text)")
    other.close()
    return None


@pytest.mark.parametrize(
    ("spoil", "cause"),
    [
        (garbage, "file is not a database"),
        (folder, "Is a directory"),
        (locked, "database is locked"),
        (other_table, "no such column: expires"),
    ],
)
async def test_t232_sessions_are_kept_in_memory_if_the_file_cannot_be_used(
    spoil: Any, cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sqlite, "LOCKED_SECONDS", 0.1)
    path = tmp_path / "sessions.sqlite"
    holder = spoil(path)
    async with gateway_of({"office": Office()}, store=SqliteStore(path)) as running, Client(running.url) as c:
        reported: list[str] = []
        running.gateway.report = reported.append
        await c.initialize()
        assert "result" in (await c.legacy("tools/list")).last
        async with Client(running.url, "token-of-nobody-0123456") as other:
            other.headers["Mcp-Session-Id"] = c.headers["Mcp-Session-Id"]
            assert (await other.legacy("tools/list")).status == 401
        assert reported == [
            f"sessions are kept in memory, and end with the gateway: {path} cannot be used ({cause})"
        ]
    if holder is not None:
        holder.close()


async def test_t232_a_disk_that_becomes_full_ends_no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = SqliteStore(tmp_path / "sessions.sqlite")
    async with gateway_of({"office": Office()}, store=store) as running, Client(running.url) as client:
        reported: list[str] = []
        running.gateway.report = reported.append
        await client.initialize()

        def full(connection: object, *_: object) -> object:
            raise sqlite3.OperationalError("database or disk is full")

        store._connection = type("Full", (), {"__enter__": full, "__exit__": full, "close": lambda _: None})()  # type: ignore[assignment]
        assert "result" in (await client.legacy("logging/setLevel", {"level": "error"})).last
        assert "result" in (await client.legacy("tools/list")).last
        assert len(reported) == 1
        assert "(database or disk is full)" in reported[0]


async def test_t232_a_changed_clock_neither_ends_nor_extends_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    wall, passed = [1_000_000.0], [500.0]
    monkeypatch.setattr(sqlite, "time", lambda: wall[0])
    monkeypatch.setattr(sqlite, "monotonic", lambda: passed[0])
    store = SqliteStore(tmp_path / "s")
    await store.put("a", b"1", 60)
    for jump in (10**6, -(10**6)):
        wall[0] += jump
        assert await store.get("a", 60) == b"1"
    passed[0] += 61
    assert await store.get("a", 60) is None
    assert [await store.count_call("ada", 1) for _ in range(2)] == [0.0, 60.0]
    wall[0] += 10**6
    assert await store.count_call("ada", 1) == 60.0
    await store.close()


# The generated token.


def test_t232_a_token_is_created_once_and_readable_by_its_owner_only(home: Path):
    first = generated_token()
    assert generated_token() == first
    path = paths.state_dir() / gateway_clients.TOKEN_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"short", b"\xff\xfe" * 20, b"two words that are long", b"\0" * 40])
def test_t232_an_invalid_token_file_is_replaced(home: Path, content: bytes):
    path = paths.state_dir() / gateway_clients.TOKEN_FILE
    paths.make_private(path.parent)
    path.touch(0o600)
    path.write_bytes(content)
    made = generated_token()
    assert len(made) == 43
    assert generated_token() == made


@pytest.mark.parametrize("how", ["readable", "fifo", "of another user"])
def test_t232_a_token_that_others_could_read_is_refused(
    home: Path, how: str, monkeypatch: pytest.MonkeyPatch
):
    path = paths.state_dir() / gateway_clients.TOKEN_FILE
    paths.make_private(path.parent)
    if how == "fifo":
        os.mkfifo(path, 0o600)
    else:
        path.touch(0o600)
        path.write_text("a-token-that-another-user-knows")
        path.chmod(0o644 if how == "readable" else 0o600)
    if how == "of another user":
        monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(ConfigError, match="others may know the token of the gateway"):
        generated_token()


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_t232_a_token_that_cannot_be_stored_is_not_used(
    home: Path, number: int, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(gateway_clients, "write_file", fail)
    with pytest.raises(ConfigError) as raised:
        generated_token()
    path = paths.state_dir() / gateway_clients.TOKEN_FILE
    assert str(raised.value) == (
        f"the token of the gateway cannot be stored in {path}: {os.strerror(number)}"
    )
    assert "--config" in (raised.value.hint or "")


# The program.


async def test_t232_the_program_continues_without_its_files_and_reports_it(home: Path, tmp_path: Path):
    settings = tmp_path / "gateway.json"
    settings.write_text(json.dumps({"callers": {"ada": {"token": ADA}}}))
    settings.chmod(0o600)
    (home / ".dragoman").mkdir(exist_ok=True)
    for name in ("state", "logs"):  # a file where a folder is needed: nothing can be written there
        (home / ".dragoman" / name).write_text("")
    async with InstalledServing("--mcp-config", "demo", *OPEN, "--config", str(settings)) as served:
        async with Client(served.url) as client:
            await client.initialize()
            called = await client.legacy("tools/call", {"name": "demo__add", "arguments": {"a": 1, "b": 2}})
            assert called.last["result"]["content"] == [{"type": "text", "text": "3"}]
        async with Client(served.url, None) as client:
            assert (await client.modern("tools/list")).status == 401
        assert served.process.stderr is not None
        said = ""
        async with asyncio.timeout(20):
            while not ("the audit log" in said and "sessions are kept in memory" in said):
                said += (await served.process.stderr.readline()).decode()
        served.process.terminate()
        said += (await served.process.stderr.read()).decode()
    assert "Traceback" not in said


def test_t232_the_program_does_not_start_without_a_token(home: Path):
    (home / ".dragoman").mkdir(exist_ok=True)
    (home / ".dragoman" / "state").write_text("")
    done = run("serve", "--mcp-config", "demo")
    said = " ".join(done.stderr.split())
    assert done.returncode == exit_codes.CONFIG
    assert said.startswith("error: the token of the gateway cannot be stored in")
    assert "Not a directory" in said
