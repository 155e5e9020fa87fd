"""T352: the session file of a gateway becomes unusable while clients are connected."""

import sqlite3
from pathlib import Path

import pytest

from dragoman.gateway import sessions
from dragoman.gateway.store import sqlite
from dragoman.gateway.store.sqlite import SqliteStore
from tests.gateway import Client, gateway_of
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-3")


async def test_t352_sessions_continue_when_their_file_fails_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sqlite, "LOCKED_SECONDS", 0.1)
    monkeypatch.setattr(sessions, "CHECK_SECONDS", 0.0)  # each request looks the session up
    path = tmp_path / "sessions.sqlite"
    async with gateway_of({"office": Office()}, store=SqliteStore(path)) as running, Client(running.url) as c:
        reported: list[str] = []
        running.gateway.report = reported.append
        await c.initialize()
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("begin immediate")  # like another program that locks the file for too long
        try:
            assert [(await c.legacy("tools/list")).status for _ in range(3)] == [200, 200, 200]
        finally:
            holder.close()
        assert len(reported) == 1
        assert "sessions are kept in memory" in reported[0]


async def test_t352_a_session_that_its_client_has_ended_is_not_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sessions, "CHECK_SECONDS", 0.0)
    store = SqliteStore(tmp_path / "sessions.sqlite")
    async with gateway_of({"office": Office()}, store=store) as running, Client(running.url) as c:
        await c.initialize()
        assert (await c.post(b"", "DELETE")).status in (200, 204)
        assert (await c.legacy("tools/list")).status == 404
