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

from dragoman import Host
from dragoman.content.blocks import TextBlock, UnknownBlock
from dragoman.errors import CallTimeout, ConnectionLost, ConnectTimeout, HttpError, RemoteError, UnknownTool
from dragoman.events import Event, ServerLost, ServerStateChanged
from tests.integration.waiting import until
from tests.servers import stdio_server
from tests.servers.web import Ask, answers, streamable
from tests.servers.web.answers import Lost
from tests.servers.web.given_answers import replace_results

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


def remote(url: str, era: str) -> dict[str, Any]:
    return {"type": "http", "url": url, "protocol": era}


def only_for(text: str, answer: Any) -> Any:
    """A bad answer to calls with this text; the others are answered well."""

    async def answered(ask: Ask) -> Any:
        return await answer(ask) if ask.params["arguments"].get("text") == text else None

    return answered


@pytest.mark.requirement("TRN-2")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("fault", ["hang up", "too late", "half an answer"])
async def test_finding_7_one_network_error_fails_one_call_only(era, fault):
    """With the official client every call in flight fails, and every later one too."""
    answer = {
        "hang up": answers.hang_up(),
        "too late": answers.never(),
        "half an answer": answers.wrong_length(5),
    }[fault]
    async with (
        streamable(revisions=(era,), on={"tools/call": only_for("bad", answer)}) as server,
        connected(remote(server.url, era)) as host,
    ):
        others = [asyncio.create_task(host.call("mcp__server__slow", {"seconds": 0.4})) for _ in range(8)]
        with pytest.raises((ConnectionLost, CallTimeout)) as caught:
            await host.call("mcp__server__echo", {"text": "bad"}, timeout_seconds=0.3)
        assert caught.value.may_have_run
        assert [outcome.text for outcome in await asyncio.gather(*others)] == ["at last"] * 8
        assert (await host.call("mcp__server__echo", {"text": "good"})).text == "good"
        assert host.servers["server"].status == "connected"
        assert len(server.asked("initialize")) <= 1, "the connection is still the first one"


@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("status", [403, 429, 500, 502, 503])
async def test_finding_8_the_http_status_is_available(era, status):
    refusal = answers.status(status, "not now", retry_after="77")  # more than a call waits
    async with (
        streamable(revisions=(era,), on={"tools/call": refusal}) as server,
        connected(remote(server.url, era)) as host,
    ):
        with pytest.raises(HttpError) as caught:
            await host.call("mcp__server__echo", {"text": "?"})
        error = caught.value
        assert (error.status, error.retry_after_seconds) == (status, 77.0)
        assert str(status) in str(error)
        assert "not now" in str(error)
        assert error.may_have_run == (status >= 500)
        server.on.clear()
        assert (await host.call("mcp__server__echo", {"text": "!"})).text == "!"


@pytest.mark.parametrize("era", ERAS)
async def test_finding_8_a_401_during_a_call_is_needs_auth_with_its_challenge(era):
    async with (
        streamable(revisions=(era,)) as server,
        connected(remote(server.url, era)) as host,
    ):
        server.on["*"] = answers.challenge(401, "Bearer x")
        with pytest.raises(HttpError) as caught:
            await host.call("mcp__server__echo", {"text": "?"})
        assert (caught.value.status, caught.value.challenge) == (401, "Bearer x")
        await until(lambda: host.servers["server"].status == "needs-auth")


@pytest.mark.requirement("LIF-7")
@pytest.mark.parametrize("lost_as", ["404 -32001", "404", "400 -32000", "200 -32600"])
async def test_finding_9_an_expired_session_is_replaced_without_a_failed_call(lost_as: Lost):
    async with (
        streamable(revisions=(ERAS[0],), lost_as=lost_as) as server,
        connected(remote(server.url, ERAS[0])) as host,
    ):
        await server.lose_sessions()
        outcomes = await asyncio.gather(
            *(host.call("mcp__server__ledger", {"key": str(n)}) for n in range(10))
        )
        assert not any(outcome.is_error for outcome in outcomes)
        assert set(server.ledger.counts.values()) == {1}, "each ran once"
        assert len(server.asked("initialize")) == 2, "all calls share one new session"


@pytest.mark.requirement("LIF-8")
async def test_finding_10_the_stream_of_a_server_is_reopened_after_every_failure(monkeypatch):
    """The official client stops after two attempts and does not report it."""
    monkeypatch.setattr("dragoman.transports.http.RETRY_SECONDS", 0.01)
    on = {"GET": answers.first(6, answers.status(503))}
    async with (
        streamable(revisions=(ERAS[0],), on=on) as server,
        connected(remote(server.url, ERAS[0])) as host,
    ):
        await server.wait_for("GET", 7, seconds=10)
        await host.call("mcp__server__change", {"name": "fresh"})
        await until(lambda: "fresh" in {tool.wire_name for tool in host.tools()})


@pytest.mark.requirement("LIF-8")
async def test_finding_10_a_stream_that_ends_repeatedly_is_reopened_and_calls_continue(monkeypatch):
    monkeypatch.setattr("dragoman.transports.http.RETRY_SECONDS", 0.01)
    async with (
        streamable(revisions=(ERAS[0],)) as server,
        connected(remote(server.url, ERAS[0])) as host,
    ):
        for number in range(1, 6):
            await server.wait_for("GET", number, seconds=10)
            assert (await host.call("mcp__server__echo", {"text": str(number)})).text == str(number)
            server.end_streams()
        await server.wait_for("GET", 6, seconds=10)
        await host.call("mcp__server__change", {"name": "fresh"})
        await until(lambda: "fresh" in {tool.wire_name for tool in host.tools()})
        assert len(server.asked("initialize")) == 1


@pytest.mark.parametrize("era", ERAS)
async def test_finding_17_a_call_is_exactly_one_request(era):
    """The official client reads the list before a call of a tool that is not on its first page, each time."""

    def listed(params: dict[str, Any]) -> dict[str, Any]:
        page = int(params.get("cursor") or 0)
        more = {"nextCursor": str(page + 1)} if page < 2 else {}
        return {"tools": [{"name": f"tool{page}", "inputSchema": {"type": "object"}}], **more}

    async with streamable(revisions=(era,)) as server:
        replace_results(server, {"tools/list": listed, "tools/call": lambda _: {"content": []}})
        async with connected(remote(server.url, era)) as host:
            await until(lambda: era == ERAS[1] or server.asked("GET"))
            before = len(server.asks)
            for _ in range(3):
                assert not (await host.call("mcp__server__tool2")).is_error
            outcome = await host.call("mcp__server__unlisted")
            assert isinstance(outcome.error, UnknownTool)
            assert [ask.rpc for ask in server.asks[before:]] == ["tools/call"] * 3


@pytest.mark.parametrize("era", ERAS)
async def test_finding_11_a_server_that_exits_while_idle_is_an_event_and_a_public_status(era):
    async with connected(stdio_server("well_behaved.py", protocol=era)) as host:
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
async def test_finding_12_pid_exit_code_and_stderr_are_available():
    async with connected(stdio_server("exits.py", "call", "7")) as host:
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
async def test_finding_13_one_invalid_byte_does_not_block_the_connection(era):
    async with connected(stdio_server("writes_given_bytes.py", protocol=era)) as host:
        noise = '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\xff"}}\n'
        good = '{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[]}}\n'
        started = time.monotonic()
        outcome = await host.call("mcp__server__say", {"writes": [noise + good]})
        assert not outcome.is_error
        echoed = await host.call("mcp__server__echo", {"message": "next"})
        assert echoed.text == "next"
        assert time.monotonic() - started < BUSY_SECONDS


@pytest.mark.slow
async def test_finding_14_a_large_line_takes_linear_time_and_has_a_limit():
    """The official client needs 15 times the processor time for 4 times the size, and has no limit."""
    async with connected(stdio_server("never_ends_a_line.py")) as host:
        seconds = {}
        for megabytes in (12, 48):
            best = []
            for _ in range(2):
                started = time.thread_time()
                outcome = await host.call("mcp__server__pour", {"kind": "reply", "megabytes": megabytes})
                best.append(time.thread_time() - started)
                assert outcome.saved[0].size_bytes == megabytes * 1_000_000
            seconds[megabytes] = min(best)
        # Linear is 4; 16 would be quadratic. The small one fits into caches that the large one does not.
        assert seconds[48] < 4 * 3.3 * seconds[12]
    limit = {"DRAGOMAN_MESSAGE_LIMIT_BYTES": 1_000_000}
    async with connected(stdio_server("never_ends_a_line.py"), settings=limit) as host:
        with pytest.raises(Exception, match="larger than the limit of 1000000 bytes"):
            await host.call("mcp__server__pour", {"kind": "reply", "megabytes": 2})
        assert (await host.call("mcp__server__echo", {"message": "still here"})).text == "still here"


@pytest.mark.requirement("TRN-1")
@pytest.mark.parametrize("habits", [[], ["silent"], ["stubborn"], ["silent", "stubborn"]], ids="-".join)
async def test_finding_15_shutdown_ends_the_children_of_a_server_that_exits_itself(habits):
    async with connected(stdio_server("has_a_child.py", "orphaning", *habits)) as host:
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


@pytest.mark.slow
async def test_finding_16_a_connect_timeout_of_one_second_is_one_second():
    """The official client's probe alone takes ten."""
    started = time.monotonic()
    async with host_of(stdio_server("silent.py"), settings={"MCP_TIMEOUT": 1000}) as host:
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
    async with connected(stdio_server("answers_oddly.py", protocol=era)) as host:
        outcome = await host.call("mcp__server__act", {"how": "no_structured"})
        assert (outcome.text, outcome.is_error, outcome.has_structured) == ("forty-two", False, False)


@pytest.mark.requirement("CAL-6")
@pytest.mark.parametrize("era", ERAS)
async def test_finding_19_an_unknown_content_type_affects_nothing_else(era):
    async with connected(stdio_server("answers_oddly.py", protocol=era)) as host:
        outcome = await host.call("mcp__server__act", {"how": "unknown_content"}, raw=True)
        assert outcome.content == (
            TextBlock("before"),
            UnknownBlock({"type": "hologram", "depth": 3}),
            TextBlock("after"),
        )
        assert "hologram" in outcome.text


@pytest.mark.parametrize("era", ERAS)
async def test_finding_20_a_timeout_of_the_host_is_not_an_error_of_the_server(era):
    async with connected(stdio_server("answers_oddly.py", protocol=era)) as host:
        outcome = await host.call("mcp__server__act", {"how": "own_timeout"})
        assert isinstance(outcome.error, RemoteError)
        assert (outcome.error.remote_code, outcome.error.code) == (-32001, "remote-error")
        with pytest.raises(CallTimeout) as caught:
            await host.call("mcp__server__act", {"how": "silence"}, timeout_seconds=0.2)
        assert caught.value.code == "timeout"
        assert not isinstance(caught.value, RemoteError)


async def test_finding_22_a_host_may_be_entered_used_and_left_in_different_tasks():
    host = host_of(stdio_server("well_behaved.py"))
    await asyncio.create_task(host.__aenter__())
    await asyncio.create_task(host.ready(timeout=20))
    calls = [asyncio.create_task(host.call("mcp__server__echo", {"message": str(n)})) for n in range(20)]
    assert [outcome.text for outcome in await asyncio.gather(*calls)] == [str(n) for n in range(20)]
    async with asyncio.timeout(6):
        await asyncio.create_task(host.__aexit__(None, None, None))
