"""T107: A server with very many saved results uses its own share of the quota only."""

import os
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.content import saving
from dragoman.content.saving import NotSaved, Saver
from dragoman.testing import InMemoryServer

pytestmark = pytest.mark.requirement("CAL-7")

LARGE = "words and words\n" * 20_000
LIMIT = 20


@pytest.fixture
def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "FILE_COUNT_LIMIT", LIMIT)


def server_with_many_results(name: str) -> InMemoryServer:
    server = InMemoryServer(name)
    blob = {"type": "resource", "resource": {"uri": "x:y", "blob": "AAAA", "mimeType": "application/x"}}
    server.add_tool("flood", lambda _a, _c: {"content": [blob] * (LIMIT + 10)})
    server.add_tool("large", lambda _a, _c: LARGE)
    server.contents.add_resource("x:data", "text")
    return server


async def test_t107_many_results_of_one_server_leave_space_for_all_others(small_shares: None, home: Path):
    servers = {name: server_with_many_results(name) for name in ("greedy", "modest", "third")}
    async with Host(servers, permission_mode="bypassPermissions") as host:
        await host.ready()
        flood = await host.call("mcp__greedy__flood")
        assert len(flood.saved) == LIMIT
        assert "is full" in flood.text
        assert (await host.call("mcp__greedy__large")).saved == ()
        for name in ("modest", "third"):
            outcome = await host.call(f"mcp__{name}__large")
            (saved,) = outcome.saved
            assert saved.path.read_text() == LARGE
        box = host.toolbox()
        for saved in flood.saved:
            assert saved.path.exists(), "what was handed out is kept"
        found = await box.call("read_result", {"handle": outcome.saved[0].handle, "lines": "1"})
        assert not found.is_error


def planted(folder: Path, owner: str, age_seconds: float, now: float) -> Path:
    """A file that another process saved for a server."""
    mark = saving.mark_of(owner)
    path = folder / f"20260101-000000-{mark}-{os.urandom(8).hex()}.txt"
    path.write_text("x")
    os.utime(path, (now - age_seconds,) * 2)
    return path


async def test_t107_results_not_returned_by_this_host_are_deleted_oldest_first(
    small_shares: None, home: Path
):
    saver = Saver()
    first = await saver.save(b"mine", owner="greedy")
    now = first.stat().st_mtime
    old = [planted(saver.folder, "greedy", 100 - number, now) for number in range(LIMIT - 1)]
    others = [planted(saver.folder, "modest", 1000, now) for _ in range(LIMIT)]
    newest = [await saver.save(b"new", owner="greedy") for _ in range(3)]

    assert [path.exists() for path in old] == [False] * 3 + [True] * (LIMIT - 4)
    assert all(path.exists() for path in (first, *newest, *others))


async def test_t107_the_share_is_full_only_when_this_host_returned_all_of_it(small_shares: None, home: Path):
    saver = Saver()
    kept = [await saver.save(b"x", owner="greedy") for _ in range(LIMIT)]
    with pytest.raises(NotSaved, match=f"the share of greedy in .* is full \\({LIMIT} files"):
        await saver.save(b"x", owner="greedy")
    assert all(path.exists() for path in kept)
    assert (await Saver().save(b"x", owner="modest")).exists()


async def test_t107_all_servers_together_have_a_limit_and_files_of_the_largest_share_are_deleted(
    small_shares: None, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(saving, "TOTAL_FILE_COUNT_LIMIT", LIMIT + 5)
    saver = Saver()
    now = (await saver.save(b"x", owner="third")).stat().st_mtime
    greedy = [planted(saver.folder, "greedy", 10 - number, now) for number in range(LIMIT - 1)]
    modest = [planted(saver.folder, "modest", 1000, now) for _ in range(5)]
    await saver.save(b"x", owner="third")

    assert [path.exists() for path in greedy] == [False] + [True] * (LIMIT - 2)
    assert all(path.exists() for path in modest), "older, and of a server that uses little"


async def test_t107_a_servers_name_is_not_part_of_a_file_name(home: Path):
    names: list[Any] = ["../../x", "a/b", "\x00", "é" * 300, ""]
    for name in names:
        path = await Saver().save(b"x", owner=name)
        assert path.parent == Saver().folder
        assert len(path.name) == len("20260101-000000-01234567-0123456789abcdef.bin")
