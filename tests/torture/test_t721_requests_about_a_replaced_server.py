"""T721: a server is disabled, enabled or reconnected while the one it replaces ends slowly. The request
applies to the new server; it is not refused as unknown."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import ConfigError, HostClosed
from tests.torture.test_t693_servers_that_end_slowly import WELL_BEHAVED, Slow, begun, host_with

pytestmark = pytest.mark.requirement("LIF-9")
CHANGED = {**WELL_BEHAVED, "env": {"A": "1"}}


def requested(host: Host, request: str) -> "asyncio.Task[Any]":
    options = {} if request == "reconnect" else {"remember": False}
    return asyncio.create_task(getattr(host, request)("slow", **options))


@pytest.mark.parametrize(
    ("request_", "status"), [("disable", "disabled"), ("enable", "connected"), ("reconnect", "connected")]
)
async def test_t721_the_request_applies_to_the_new_server(home: Path, request_: str, status: str):
    slow = Slow(home)
    async with host_with(slow) as host:
        reload = await begun(host, slow, slow=CHANGED)
        acting = requested(host, request_)
        await asyncio.sleep(0.1)
        slow.gate.touch()
        assert ((await acting).status, host.servers["slow"].status) == (status, status)
        await reload
        await host.ready(timeout=20)
        assert host.servers["slow"].status == status


async def test_t721_a_server_is_disabled_although_that_cannot_be_saved(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    slow = Slow(home)
    async with host_with(slow) as host:
        reload = await begun(host, slow, slow=CHANGED)
        monkeypatch.setattr("dragoman.host.save_disabled", full)
        acting = asyncio.create_task(host.disable("slow"))
        await asyncio.sleep(0.1)
        slow.gate.touch()
        with pytest.raises(ConfigError, match="is disabled in this host, but that could not be saved"):
            await acting
        await reload
        await host.ready(timeout=20)
        assert host.servers["slow"].status == "disabled"


async def test_t721_a_host_that_is_closed_meanwhile_reports_that(home: Path):
    slow = Slow(home)
    async with host_with(slow) as host:
        reload = await begun(host, slow, slow=CHANGED)
        acting = requested(host, "disable")
        await asyncio.sleep(0.1)
        await host.close(now=True)
        with pytest.raises(HostClosed):
            await acting
        await reload


async def test_t721_other_requests_report_why_the_server_is_unavailable(home: Path):
    slow = Slow(home)
    async with host_with(slow) as host:
        reload = await begun(host, slow, slow=CHANGED)
        with pytest.raises(ConfigError, match="server 'slow' is being replaced"):
            await host.set_log_level("slow", "info")
        slow.gate.touch()
        await reload
