"""T320: a file changes while it cannot be read. The change applies as soon as it can be read, without
another change."""

import asyncio
import json
import os
import resource
from pathlib import Path

import pytest

from dragoman.gateway.access import RequestRefused
from tests.e2e.test_serve import OPEN, InstalledServing, token
from tests.gateway import ADA, BOB, Client
from tests.torture.test_t233_callers_that_are_taken_out import BOTH, quick, watched, write

__all__ = ["quick"]

UNREAD = (
    b"settings.json: the file cannot be read: Too many open files; the version read before stays in effect"
)


@pytest.mark.requirement("CFG-11")
async def test_t320_a_deny_rule_added_during_a_shortage_of_descriptors_applies_afterwards(home: Path):
    async with (
        InstalledServing("--mcp-config", "demo", *OPEN) as served,
        Client(served.url, token(home)) as client,
    ):
        assert len((await client.modern("tools/list")).last["result"]["tools"]) == 5
        pid = served.process.pid
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))  # a file cannot get a higher number
        (home / "new.json").write_text(json.dumps({"permissions": {"deny": ["mcp__demo"]}}))
        (home / "new.json").rename(home / ".dragoman" / "settings.json")
        assert served.process.stderr is not None
        async with asyncio.timeout(30):
            while UNREAD not in await served.process.stderr.readline():
                pass
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        async with asyncio.timeout(30):
            while (await client.modern("tools/list")).last["result"]["tools"]:
                await asyncio.sleep(0.05)


@pytest.mark.requirement("GWY-3")
@pytest.mark.usefixtures("quick")
async def test_t320_a_caller_is_removed_by_a_file_that_is_made_private_later(tmp_path: Path):
    path, reported = tmp_path / "gateway.json", list[str]()
    write(path, BOTH)
    callers = watched(path, reported)
    assert (await callers.identify([f"Bearer {BOB}"])).caller.id == "bob"

    write(path, {"ada": {"token": ADA}})
    path.chmod(0o644)
    for _ in range(3):
        assert (await callers.identify([f"Bearer {BOB}"])).caller.id == "bob"
    text = f"{path} contains tokens, and others can read it; the callers before the change stay in effect"
    assert reported == [text]

    path.chmod(0o600)
    with pytest.raises(RequestRefused):
        await callers.identify([f"Bearer {BOB}"])
    assert (await callers.identify([f"Bearer {ADA}"])).caller.id == "ada"
    path.chmod(0o644)
    assert (await callers.identify([f"Bearer {ADA}"])).caller.id == "ada"
    assert reported == [text]


@pytest.mark.requirement("GWY-3")
@pytest.mark.usefixtures("quick")
async def test_t320_a_very_large_callers_file_is_not_read(tmp_path: Path):
    path, reported = tmp_path / "gateway.json", list[str]()
    write(path, BOTH)
    callers = watched(path, reported)
    os.truncate(path, 1024**3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        assert (await callers.identify([f"Bearer {BOB}"])).caller.id == "bob"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024
    text = f"{path}: the file is larger than 8 MB"
    assert reported == [f"{text}; the callers before the change stay in effect"]
