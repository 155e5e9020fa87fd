"""T173: an entry that is not approved delays and ends nothing, whatever its content."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.live_configuration import LiveConfiguration
from tests.cpu_time import CpuTimer
from tests.integration.desk import Desk
from tests.integration.waiting import until

LONE_SURROGATE = "ab\ud83dcd-secret-1"
ENTRIES: dict[str, dict[str, Any]] = {
    "a variable": {"command": "x", "env": {"API_TOKEN": LONE_SURROGATE}},
    "an argument": {"command": "x", "args": ["--token", LONE_SURROGATE]},
    "a header": {"url": "https://x.example.com/", "headers": {"Authorization": f"Bearer {LONE_SURROGATE}"}},
    "a helper": {"url": "https://x.example.com/", "headersHelper": f"echo --token {LONE_SURROGATE}"},
    "a client secret": {"url": "https://x.example.com/", "oauth": {"clientSecret": LONE_SURROGATE}},
    "a private key": {"url": "https://x.example.com/", "oauth": {"privateKey": LONE_SURROGATE}},
    "a workload's token": {"url": "https://x.example.com/", "oauth": {"workloadToken": LONE_SURROGATE}},
    "a client id": {"url": "https://x.example.com/", "oauth": {"clientId": LONE_SURROGATE}},
}


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize("case", ENTRIES)
async def test_t173_a_lone_surrogate_in_an_entry_causes_no_failure(home: Path, case: str):
    desk = Desk(home)
    desk.in_project({"odd": ENTRIES[case]})
    async with Host.configured(cwd=desk.project) as host:
        assert host.servers["odd"].status == "pending"
    desk.user({"mine": {**ENTRIES[case], "disabled": True}})
    async with Host.configured(cwd=desk.project) as host:
        assert host.servers["mine"].status == "disabled"


@pytest.mark.requirement("CFG-6")
async def test_t173_a_prohibition_written_after_an_unexpected_error_is_applied(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    """Whatever error the reading of files raises, the next change is read again."""
    desk = Desk(home)
    desk.user({})
    failed = asyncio.Event()

    async def broken(*_: object, **__: object) -> None:
        failed.set()
        raise UnicodeEncodeError("utf-8", "x", 0, 1, "surrogates not allowed")

    async with Host.configured(cwd=desk.project, watch=True) as host:
        await host.ready(10)
        with monkeypatch.context() as patched:
            patched.setattr(LiveConfiguration, "_reload_once", broken)
            desk.user({"other": {"command": "x", "disabled": True}})
            await failed.wait()
        desk.user({}, permissions={"deny": ["mcp__good"]})
        await until(lambda: any("mcp__good" in part.rules.deny for part in host.configuration.permissions))


@pytest.mark.requirement("CFG-6")
def test_t173_a_huge_secret_of_an_unapproved_entry_causes_no_delay(home: Path):
    """The file is read in both cases; the search for spellings of the secret took forty seconds."""
    desk = Desk(home)
    times: list[float] = []
    for field in ("NOTE", "API_TOKEN"):
        desk.in_project({"odd": {"command": "x", "env": {field: "ab/cd+" * 300_000}}})
        timer = CpuTimer()
        Host.configured(cwd=desk.project)
        times.append(timer.seconds())
    assert times[1] < 3 * times[0] + 0.5
