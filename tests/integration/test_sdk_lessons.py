"""What the official Python client gets wrong for hosts (`mcp` 2.3.0), and what Dragoman does instead.

Each test is named after one finding: what a host sees when it matters.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman import CallTimeout, ConnectTimeout, Host, RemoteError
from dragoman.content.blocks import TextBlock, UnknownBlock
from dragoman.events import Event, ServerLost, ServerStateChanged
from tests.servers import zoo

ERAS = ["2025-11-25", "2026-07-28"]
BUSY_SECONDS = 1.0
"""What a busy machine may add to any time limit."""


def host_of(entry: dict[str, Any], **options: Any) -> Host:
    return Host({"server": entry}, permission_mode="bypassPermissions", **options)


@asynccontextmanager
async def connected(entry: dict[str, Any], **options: Any) -> AsyncIterator[Host]:
    async with host_of(entry, **options) as host:
        await host.ready(timeout=20)
        assert host.servers["server"].status == "connected", host.servers["server"].reason
        yield host


async def first(host: Host, kind: type[Event], seconds: float = 5.0) -> Any:
    async with asyncio.timeout(seconds):
        async for event in host.events():
            if isinstance(event, kind):
                return event
    raise AssertionError(f"no {kind.__name__}")


@pytest.mark.parametrize("era", ERAS)
async def test_finding_11_a_server_that_dies_while_idle_is_an_event_and_a_public_status(era):
    async with connected(zoo("calm.py", protocol=era)) as host:
        losing = asyncio.create_task(first(host, ServerLost))
        changing = asyncio.create_task(first(host, ServerStateChanged))
        await asyncio.sleep(0)  # both listen now
        os.kill(host.servers["server"].pid, signal.SIGKILL)
        lost, changed = await losing, await changing
        assert (lost.server, lost.reason) == ("server", "it was ended by SIGKILL")
        assert (changed.phase, changed.reason) == ("reconnecting", "it was ended by SIGKILL")
        view = host.servers["server"]
        assert (view.status, view.reason) == ("pending", "it was ended by SIGKILL")


@pytest.mark.requirement("TRN-1")
async def test_finding_12_pid_exit_code_and_stderr_are_there_for_whoever_asks():
    async with connected(zoo("dies.py", "call", "7")) as host:
        pid = host.servers["server"].pid
        assert pid is not None
        assert os.path.exists(f"/proc/{pid}")
        losing = asyncio.create_task(first(host, ServerLost))
        await asyncio.sleep(0)
        with pytest.raises(Exception, match="exited with code 7"):
            await host.call("mcp__server__act")
        await losing
        view = host.servers["server"]
        assert view.exit_code == 7
        assert "opening the database" in view.stderr_tail
        assert view.error is not None
        assert view.error.exit_code == 7
        assert view.error.stderr_tail == view.stderr_tail


@pytest.mark.parametrize("era", ERAS)
async def test_finding_13_one_invalid_byte_does_not_wedge_the_connection(era):
    async with connected(zoo("says_as_told.py", protocol=era)) as host:
        noise = '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\xff"}}\n'
        good = '{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[]}}\n'
        started = time.monotonic()
        outcome = await host.call("mcp__server__say", {"writes": [noise + good]})
        assert not outcome.is_error
        echoed = await host.call("mcp__server__echo", {"message": "next"})
        assert echoed.text == "next"
        assert time.monotonic() - started < BUSY_SECONDS


async def test_finding_14_a_large_line_costs_linear_time_and_a_limit_holds():
    """The official client needs 15 times the processor time for 4 times the size, and has no limit."""
    async with connected(zoo("never_ends_a_line.py")) as host:
        seconds = {}
        for megabytes in (12, 48):
            best = []
            for _ in range(2):
                started = time.thread_time()
                outcome = await host.call("mcp__server__pour", {"kind": "reply", "megabytes": megabytes})
                best.append(time.thread_time() - started)
                assert len(outcome.text) == megabytes * 1_000_000
            seconds[megabytes] = min(best)
        assert seconds[48] < 4 * 2.5 * seconds[12]
    limit = {"DRAGOMAN_MESSAGE_LIMIT_BYTES": 1_000_000}
    async with connected(zoo("never_ends_a_line.py"), settings=limit) as host:
        with pytest.raises(Exception, match="larger than the limit of 1000000 bytes"):
            await host.call("mcp__server__pour", {"kind": "reply", "megabytes": 2})
        assert (await host.call("mcp__server__echo", {"message": "still here"})).text == "still here"


@pytest.mark.requirement("TRN-1")
@pytest.mark.parametrize("habits", [[], ["silent"], ["stubborn"], ["silent", "stubborn"]], ids="-".join)
async def test_finding_15_shutdown_reaches_the_children_of_a_server_that_ends_by_itself(habits):
    async with connected(zoo("has_a_child.py", "orphaning", *habits)) as host:
        child = int((await host.call("mcp__server__child")).text)
        os.kill(child, 0)
        started = time.monotonic()
    took = time.monotonic() - started
    try:
        with open(f"/proc/{child}/stat") as file:
            state = file.read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        state = "X"
    assert state in "ZX"
    assert took < 0.6 + BUSY_SECONDS


async def test_finding_16_a_connect_timeout_of_one_second_is_one_second():
    """The official client's probe alone takes ten."""
    started = time.monotonic()
    async with host_of(zoo("silent.py"), settings={"MCP_TIMEOUT": 1000}) as host:
        await host.ready(timeout=20)
        took = time.monotonic() - started
        view = host.servers["server"]
        assert view.status == "failed"
        assert isinstance(view.error, ConnectTimeout)
        assert "no answer within 1 s" in str(view.error)
    assert 0.9 < took < 1 + BUSY_SECONDS


@pytest.mark.requirement("CAL-6")
@pytest.mark.parametrize("era", ERAS)
async def test_finding_18_a_result_without_the_promised_structure_is_kept(era):
    async with connected(zoo("answers_oddly.py", protocol=era)) as host:
        outcome = await host.call("mcp__server__act", {"how": "no_structured"})
        assert (outcome.text, outcome.is_error, outcome.has_structured) == ("forty-two", False, False)


@pytest.mark.requirement("CAL-6")
@pytest.mark.parametrize("era", ERAS)
async def test_finding_19_an_unknown_kind_of_content_costs_nothing_else(era):
    async with connected(zoo("answers_oddly.py", protocol=era)) as host:
        outcome = await host.call("mcp__server__act", {"how": "unknown_content"})
        assert outcome.content == (
            TextBlock("before"),
            UnknownBlock({"type": "hologram", "depth": 3}),
            TextBlock("after"),
        )
        assert "hologram" in outcome.text


@pytest.mark.parametrize("era", ERAS)
async def test_finding_20_our_timeout_is_not_the_servers_own_error(era):
    async with connected(zoo("answers_oddly.py", protocol=era)) as host:
        outcome = await host.call("mcp__server__act", {"how": "own_timeout"})
        assert isinstance(outcome.error, RemoteError)
        assert (outcome.error.remote_code, outcome.error.code) == (-32001, "remote-error")
        with pytest.raises(CallTimeout) as caught:
            await host.call("mcp__server__act", {"how": "silence"}, timeout_seconds=0.2)
        assert caught.value.code == "timeout"
        assert not isinstance(caught.value, RemoteError)


async def test_finding_22_a_host_may_be_entered_used_and_left_in_different_tasks():
    host = host_of(zoo("calm.py"))
    await asyncio.create_task(host.__aenter__())
    await asyncio.create_task(host.ready(timeout=20))
    calls = [asyncio.create_task(host.call("mcp__server__echo", {"message": str(n)})) for n in range(20)]
    assert [outcome.text for outcome in await asyncio.gather(*calls)] == [str(n) for n in range(20)]
    async with asyncio.timeout(6):
        await asyncio.create_task(host.__aexit__(None, None, None))
