"""The store of a gateway that runs alone."""

import stat
from pathlib import Path

import pytest

from dragoman.gateway.store.sqlite import RecentCalls, SqliteStore
from tests.gateway import BOB, LEGACY, Client, gateway_of
from tests.integration.waiting import until
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-4")


async def test_a_legacy_session_continues_after_a_restart_of_the_gateway(tmp_path: Path):
    file = tmp_path / "state" / "sessions.sqlite"
    async with gateway_of({"office": Office((LEGACY,))}, store=SqliteStore(file)) as running:
        client = Client(running.url)
        await client.initialize()
        assert "result" in (await client.legacy("resources/subscribe", {"uri": "file:///a"})).last
    assert [stat.S_IMODE(each.stat().st_mode) for each in (file, file.parent)] == [0o600, 0o700]
    assert client.headers["Mcp-Session-Id"].encode() not in file.read_bytes()
    office = Office((LEGACY,))
    async with client, gateway_of({"office": office}, store=SqliteStore(file)) as running:
        client.url = running.url
        async with Client(running.url, BOB) as bob:
            bob.headers["Mcp-Session-Id"] = client.headers["Mcp-Session-Id"]
            assert (await bob.legacy("tools/list")).status == 404
        assert "result" in (await client.legacy("tools/list")).last
        await until(lambda: office.subscribed == ["file:///a"])
        assert (await client.post(b"", method="DELETE")).status == 204
    async with (
        gateway_of({"office": Office()}, store=SqliteStore(file)) as running,
        Client(running.url) as again,
    ):
        again.headers["Mcp-Session-Id"] = client.headers["Mcp-Session-Id"]
        assert (await again.legacy("tools/list")).status == 404


async def test_an_entry_ends_after_its_time_unless_it_is_used(tmp_path: Path):
    store = SqliteStore(tmp_path / "s")
    await store.put("kept", b"1", 60)
    await store.put("over", b"2", 0)
    assert [await store.get("kept", 60), await store.get("over", 60), await store.get("none", 60)] == [
        b"1",
        None,
        None,
    ]
    await store.close()


def test_calls_are_counted_in_the_last_minute_for_each_caller():
    now = [0.0]
    calls = RecentCalls(lambda: now[0])
    assert [calls.wait_seconds("a", 2) for _ in range(2)] == [0.0, 0.0]
    now[0] = 10.0
    assert (calls.wait_seconds("a", 2), calls.wait_seconds("b", 2), calls.wait_seconds("c", 0)) == (
        50.0,
        0.0,
        60.0,
    )
    now[0] = 60.0
    assert calls.wait_seconds("a", 2) == 0.0
