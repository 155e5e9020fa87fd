"""Servers that go away and come back, and what becomes of calls meanwhile."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman import ConfigError, Host
from dragoman.errors import CallTimeout, ConnectionLost, HttpError, NotConnected, SignInNeeded
from dragoman.events import Event, ServerConnected, ServerFailed, ServerStateChanged
from dragoman.testing import FakeClock
from tests.faults import FaultProxy
from tests.integration.waiting import until
from tests.integration.workshop import our_server, workshop
from tests.servers import stdio_server
from tests.servers.web import answers, http_sse, streamable, websocket

pytestmark = pytest.mark.slow

QUICK = {"DRAGOMAN_RECONNECT_WAIT_MS": 20, "DRAGOMAN_RECONNECT_LONGEST_WAIT_MS": 80}


@asynccontextmanager
async def host_of(
    entry: Any, *, settings: dict[str, int] | None = None, **options: Any
) -> AsyncIterator[Host]:
    options.setdefault("permission_mode", "bypassPermissions")
    async with Host({"x": entry}, settings={**QUICK, **(settings or {})}, **options) as host:
        await host.ready(timeout=20)
        yield host


def kill(host: Host) -> int:
    pid = host.servers["x"].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    return pid


async def gathered(host: Host, kinds: tuple[type[Event], ...]) -> list[Event]:
    """Starts listening; the list fills while the host lives."""
    found: list[Event] = []
    events = host.events()

    async def listen() -> None:
        async for event in events:
            if isinstance(event, kinds):
                found.append(event)

    host.listening = asyncio.create_task(listen())  # type: ignore[attr-defined]
    return found


def is_another(host: Host, pids: set[int]) -> bool:
    """Whether its process is none of these."""
    pid = host.servers["x"].pid
    return pid is not None and pid not in pids


NEVER_AGAIN = {"DRAGOMAN_RECONNECT_WAIT_MS": 600_000, "DRAGOMAN_RECONNECT_LONGEST_WAIT_MS": 600_000}


@pytest.mark.requirement("LIF-5")
async def test_a_process_that_answered_a_call_is_restarted_at_once_after_every_exit():
    async with host_of(workshop("ours"), settings=NEVER_AGAIN) as host:
        pids = set[int]()
        for number in range(5):
            assert (await host.call("mcp__x__add", {"a": number, "b": 1})).text == str(number + 1)
            pids.add(kill(host))
            await until(lambda: host.servers["x"].status != "connected" or is_another(host, pids))
        assert (await host.call("mcp__x__add", {"a": 5, "b": 1})).text == "6"
        assert len(pids) == 5


@pytest.mark.requirement("LIF-5")
async def test_a_process_that_answered_no_call_is_restarted_after_a_wait():
    async with host_of(workshop("ours"), settings=NEVER_AGAIN) as host:
        kill(host)
        await until(lambda: host.servers["x"].phase == "reconnecting")
        with pytest.raises(NotConnected):
            await host.call("mcp__x__add", {"a": 1, "b": 1}, timeout_seconds=0.5)


@pytest.mark.requirement("LIF-5")
async def test_a_killed_process_is_restarted_and_answers_calls():
    async with host_of(workshop("ours")) as host:
        told = await gathered(host, (ServerStateChanged, ServerConnected))
        first = kill(host)
        await until(lambda: host.servers["x"].phase == "reconnecting")
        assert [tool.wire_name for tool in host.tools()], "its tools stay on offer meanwhile"
        assert (await host.call("mcp__x__add", {"a": 1, "b": 2})).text == "3"
        assert host.servers["x"].pid != first
        states = [event.phase or event.status for event in told if isinstance(event, ServerStateChanged)]
        assert states[0] == "reconnecting"
        assert states[-1] == "connected"


@pytest.mark.requirement("LIF-5")
async def test_calls_during_a_restart_wait_and_all_succeed():
    async with host_of(workshop("ours")) as host:
        kill(host)
        await until(lambda: host.servers["x"].phase == "reconnecting")
        outcomes = await asyncio.gather(*(host.call("mcp__x__add", {"a": n, "b": 0}) for n in range(20)))
        assert [outcome.text for outcome in outcomes] == [str(n) for n in range(20)]


@pytest.mark.requirement("LIF-5")
async def test_a_call_in_flight_at_an_exit_is_not_repeated_and_its_error_states_that_it_may_have_run():
    async with host_of(workshop("ours")) as host:
        holding = asyncio.create_task(host.call("mcp__x__hold"))
        await until(lambda: _says(host, "1 begun, 0 given up"))
        kill(host)
        with pytest.raises(ConnectionLost) as caught:
            await holding
        assert caught.value.may_have_run
        await until(lambda: _says(host, "0 begun, 0 given up"))


async def _says(host: Host, what: str) -> bool:
    return (await host.call("mcp__x__held")).text == what


@pytest.mark.requirement("LIF-5")
async def test_after_five_attempts_a_server_is_failed_and_can_be_reconnected_by_a_person(tmp_path):
    gate = tmp_path / "gate"
    gate.touch()
    entry = {**stdio_server("well_behaved.py"), "command": "sh"}
    python = stdio_server("well_behaved.py")
    entry["args"] = ["-c", f'test -e {gate} && exec "$@"', "sh", python["command"], *python["args"]]
    async with host_of(entry) as host:
        told = await gathered(host, (ServerStateChanged, ServerFailed))
        gate.unlink()
        kill(host)
        await until(lambda: host.servers["x"].status == "failed")
        attempts = {event.attempt for event in told if isinstance(event, ServerStateChanged)}
        assert max(attempts) == 5
        assert sum(isinstance(event, ServerFailed) for event in told) == 1
        with pytest.raises(NotConnected):
            await host.call("mcp__x__echo", {"message": "anybody?"})
        gate.touch()
        assert (await host.reconnect("x")).status == "connected"
        assert (await host.call("mcp__x__echo", {"message": "back"})).text == "back"


@pytest.mark.parametrize("entry", [{"command": "/nonexistent"}, {"url": "http://127.0.0.1:9/mcp"}])
@pytest.mark.requirement("LIF-3")
async def test_a_local_server_that_cannot_start_fails_at_once_with_its_reason(entry):
    async with host_of(entry, settings={"DRAGOMAN_RECONNECT_WAIT_MS": 60_000}) as host:
        view = host.servers["x"]
        assert view.status == "failed"
        assert view.error is not None
        assert view.error.hint


async def test_a_remote_server_that_was_down_at_the_start_is_connected_later():
    async with streamable() as server, FaultProxy(server.port) as proxy:
        proxy.refuse()
        entry = {"url": f"http://127.0.0.1:{proxy.port}/mcp"}
        async with host_of(entry, settings={"DRAGOMAN_RECONNECT_ATTEMPTS": 50}) as host:
            assert host.servers["x"].status == "failed"
            proxy.accept()
            await until(lambda: host.servers["x"].status == "connected")
            assert (await host.call("mcp__x__add", {"a": 1, "b": 2})).text == "3"


@pytest.mark.requirement("LIF-7")
@pytest.mark.parametrize("lost_as", ["404 -32001", "404", "400 -32000", "200 -32600"])
async def test_a_session_lost_by_the_server_is_replaced_and_the_call_repeated(lost_as):
    async with (
        streamable(revisions=("2025-11-25",), lost_as=lost_as) as server,
        host_of({"url": server.url}) as host,
    ):
        await server.lose_sessions()
        assert (await host.call("mcp__x__ledger", {"key": "k"})).text
        assert server.ledger.counts["k"] == 1
        assert len(server.asked("initialize")) == 2
        assert "Mcp-Session-Id" not in server.asked("initialize")[1].headers


@pytest.mark.requirement("LIF-7")
async def test_a_session_that_is_lost_repeatedly_ends_in_a_failure():
    async with (
        streamable(revisions=("2025-11-25",), lost_after=0) as server,
        host_of({"url": server.url}) as host,
    ):
        for _ in range(3):
            try:
                await host.call("mcp__x__echo", {"text": "?"}, timeout_seconds=5)
            except (ConnectionLost, NotConnected):
                continue
        assert len(server.asked("initialize")) < 25


@pytest.mark.requirement("LIF-6")
async def test_one_broken_answer_fails_its_call_and_three_in_a_row_end_the_connection():
    async with streamable() as server, host_of({"url": server.url}) as host:
        told = await gathered(host, (ServerStateChanged,))
        server.on["tools/call"] = answers.hang_up()
        for _ in range(2):
            with pytest.raises(ConnectionLost):
                await host.call("mcp__x__echo", {"text": "?"})
        assert told == []
        server.on.clear()
        assert (await host.call("mcp__x__echo", {"text": "!"})).text == "!", "a good answer begins anew"
        server.on["tools/call"] = answers.hang_up()
        for _ in range(3):
            with pytest.raises(ConnectionLost):
                await host.call("mcp__x__echo", {"text": "?"})
        server.on.clear()
        assert (await host.call("mcp__x__echo", {"text": "!"})).text == "!"
        assert next(event.phase for event in told if isinstance(event, ServerStateChanged)) == "reconnecting"


@pytest.mark.requirement("LIF-8")
@pytest.mark.parametrize("pin", ["2026-07-28", "2025-11-25"])
async def test_a_changed_list_is_read_again_over_http(pin):
    async with streamable() as server, host_of({"url": server.url, "protocol": pin}) as host:
        await host.call("mcp__x__change", {"name": "fresh"})
        await until(lambda: "fresh" in {tool.wire_name for tool in host.tools()})
        assert server.faults == []


@pytest.mark.requirement("LIF-8")
async def test_the_last_good_list_is_kept_when_reading_it_again_fails():
    async with streamable() as server, host_of({"url": server.url}) as host:
        before = [tool.name for tool in host.tools()]
        server.on["tools/list"] = answers.status(500)
        await host.call("mcp__x__change", {"name": "fresh"})
        await until(lambda: host.servers["x"].problems)
        assert [tool.name for tool in host.tools()] == before


@pytest.mark.requirement("LIF-9")
async def test_disable_ends_a_server_and_enable_connects_it_again():
    async with host_of(workshop("ours")) as host:
        pid = host.servers["x"].pid
        view = await host.disable("x")
        assert (view.status, view.pid is None or view.pid == pid) == ("disabled", True)
        assert not os.path.exists(f"/proc/{pid}")
        assert host.tools() == []
        assert (await host.enable("x")).status == "connected"
        assert (await host.call("mcp__x__add", {"a": 1, "b": 2})).text == "3"


@pytest.mark.requirement("LIF-9")
async def test_the_last_of_several_commands_applies():
    async with host_of(our_server()) as host:
        words = [
            host.disable("x"),
            host.enable("x"),
            host.reconnect("x"),
            host.disable("x"),
            host.enable("x"),
        ]
        await asyncio.gather(*words)
        await host.ready(timeout=5)
        assert host.servers["x"].status == "connected"
        await asyncio.gather(host.enable("x"), host.reconnect("x"), host.disable("x"))
        assert host.servers["x"].status == "disabled"


@pytest.mark.requirement("LIF-9")
async def test_disabling_while_connecting_takes_effect():
    async with Host({"x": stdio_server("silent.py")}, settings={"MCP_TIMEOUT": 20_000}) as host:
        await until(lambda: host.servers["x"].phase == "handshaking")
        pid = host.servers["x"].pid
        async with asyncio.timeout(5):
            assert (await host.disable("x")).status == "disabled"
        assert not os.path.exists(f"/proc/{pid}")


async def test_an_unknown_server_is_an_error_without_a_wait():
    async with host_of(our_server()) as host:
        for act in (host.reconnect, host.enable, host.disable):
            with pytest.raises(ConfigError, match="no server 'y'"):
                await act("y")


async def test_disabling_is_remembered_for_servers_of_files(home):
    (home / ".dragoman").mkdir(mode=0o700)
    entry = stdio_server("well_behaved.py")
    settings = home / ".dragoman" / "settings.json"
    settings.write_text(json.dumps({"mcpServers": {"x": entry}}))
    async with Host.configured() as host:
        await host.ready(timeout=20)
        assert (await host.disable("x")).status == "disabled"
        assert json.loads(settings.read_text())["disabledMcpServers"] == ["x"]
        assert (await host.enable("x")).status == "connected"
        assert json.loads(settings.read_text())["disabledMcpServers"] == []


class SleepyClock(FakeClock):
    """Wall time can jump while counted time stands still."""

    slept = 0.0

    def now(self) -> float:
        return super().now() + self.slept


async def test_after_a_system_sleep_connections_are_pinged_and_lost_ones_reconnected(monkeypatch):
    monkeypatch.setattr("dragoman.connections.supervisor.TICK_SECONDS", 0.02)
    monkeypatch.setattr("dragoman.connections.supervisor.CHECK_SECONDS", 0.2)
    clock = SleepyClock()
    async with websocket() as server, FaultProxy(server.port) as proxy:
        entry = {"type": "ws", "url": f"ws://127.0.0.1:{proxy.port}/ws"}
        async with host_of(entry, clock=clock) as host:
            proxy.black_hole()
            clock.slept = 3600.0
            await until(lambda: host.servers["x"].phase == "reconnecting")
            proxy.heal()
            await until(lambda: host.servers["x"].status == "connected")


async def test_a_server_that_was_stopped_has_no_pid():
    """Neither its own, nor that of the process to which it had handed over."""
    entry = {**stdio_server("launcher.py"), "lazy": True}
    async with host_of(entry, settings={"DRAGOMAN_IDLE_STOP_MS": 300}) as host:
        assert (await host.call("mcp__x__echo", {"message": "?"})).text == "?"
        await until(lambda: host.servers["x"].pid is not None)
        await until(lambda: host.servers["x"].reason == "starts at first use")
        await until(lambda: host.servers["x"].pid is None)
        assert host.servers["x"].status == "pending"


@pytest.mark.slow
@pytest.mark.requirement("LIF-11")
async def test_a_lazy_server_starts_at_first_use_and_stops_when_idle(tmp_path):
    entry = {**workshop("ours"), "lazy": True}
    async with host_of(entry, settings={"DRAGOMAN_IDLE_STOP_MS": 300}) as host:
        # Nothing is known of it yet, so it is started once, and stopped when it is not used.
        assert host.servers["x"].status == "connected"
        await until(lambda: host.servers["x"].status == "pending")
    async with host_of(entry, settings={"DRAGOMAN_IDLE_STOP_MS": 300}) as host:
        view = host.servers["x"]
        assert (view.status, view.phase, view.pid) == ("pending", None, None)
        assert "add" in {tool.wire_name for tool in host.tools()}, "as it was last time"
        assert (await host.call("mcp__x__add", {"a": 1, "b": 2})).text == "3"
        assert host.servers["x"].status == "connected"
        await until(lambda: host.servers["x"].status == "pending")
        assert (await host.call("mcp__x__add", {"a": 2, "b": 2})).text == "4"


@pytest.mark.requirement("LIF-1")
async def test_every_change_of_state_is_an_event():
    async with Host({"x": workshop("ours")}, settings=QUICK, permission_mode="bypassPermissions") as host:
        told = await gathered(host, (ServerStateChanged,))
        await host.ready(timeout=20)
        kill(host)
        await until(lambda: host.servers["x"].phase == "reconnecting")
        await until(lambda: host.servers["x"].status == "connected")
        await host.disable("x")
    states = [event.phase or event.status for event in told if isinstance(event, ServerStateChanged)]
    shortened = [state for number, state in enumerate(states) if states[number - 1 : number] != [state]]
    assert shortened[-4:] == ["connected", "reconnecting", "connected", "disabled"]


@pytest.mark.requirement("TRN-10")
async def test_a_server_with_only_the_older_transport_is_detected_and_remembered():
    async with http_sse() as server:
        for _ in range(2):
            async with host_of({"url": server.url}) as host:
                assert host.servers["x"].status == "connected"
                assert (await host.call("mcp__x__add", {"a": 1, "b": 2})).text == "3"
        posts = [ask for ask in server.asks if ask.method == "POST" and ask.path == "/sse"]
        assert len(posts) == 2, "the second time, nothing is tried first"


@pytest.mark.requirement("TRN-10")
@pytest.mark.parametrize("speaks", [("2026-07-28",), ("2025-11-25",), ("2025-03-26",)])
async def test_the_revision_is_detected_and_remembered(speaks):
    async with streamable(revisions=speaks) as server:
        for _ in range(2):
            async with host_of({"url": server.url}) as host:
                assert host.servers["x"].protocol_version == speaks[0]
        assert server.faults == []
        assert len(server.asked("server/discover")) == (2 if speaks[0] == "2026-07-28" else 1)


async def test_a_401_is_the_state_needs_auth_and_not_a_failure():
    async with streamable(on={"*": answers.challenge()}) as server, host_of({"url": server.url}) as host:
        view = host.servers["x"]
        assert view.status == "needs-auth"
        assert "401" in (view.reason or "")


@pytest.mark.requirement("LIF-9")
async def test_calls_during_a_requested_reconnect_wait_for_it():
    async with host_of(workshop("ours")) as host:
        stop = asyncio.Event()
        outcomes: list[Any] = []

        async def keep_calling() -> None:
            while not stop.is_set():
                outcomes.append((await host.call("mcp__x__add", {"a": 1, "b": 2})).text)

        callers = [asyncio.create_task(keep_calling()) for _ in range(3)]
        await until(lambda: outcomes)
        for _ in range(3):
            await host.reconnect("x")
        stop.set()
        ended = await asyncio.gather(*callers, return_exceptions=True)
        # One that was under way when the link was closed may have run, and says so; no other is lost.
        assert all(isinstance(end, ConnectionLost) and end.may_have_run for end in ended if end is not None)
        assert set(outcomes) == {"3"}


@pytest.mark.requirement("LIF-9")
async def test_disabling_and_at_once_enabling_a_configured_server_leaves_it_enabled(home):
    (home / ".dragoman").mkdir(mode=0o700)
    settings = home / ".dragoman" / "settings.json"
    settings.write_text(json.dumps({"mcpServers": {"x": stdio_server("well_behaved.py")}}))
    async with Host.configured() as host:
        await host.ready(timeout=20)
        for _ in range(3):
            await asyncio.gather(host.disable("x"), host.enable("x"))
            assert host.servers["x"].status == "connected"
            await asyncio.gather(host.enable("x"), host.disable("x"))
            assert host.servers["x"].status == "disabled"


@pytest.mark.requirement("LIF-11")
async def test_a_lazy_server_that_was_disabled_can_be_used_again_once_enabled():
    entry = {**workshop("ours"), "lazy": True}
    async with host_of(entry):
        pass  # what it offers is known from now on
    async with host_of(entry) as host:
        await host.disable("x")
        assert host.tools() == []
        await host.enable("x")
        assert (await host.call("mcp__x__add", {"a": 1, "b": 2})).text == "3"
        assert (await host.reconnect("x")).status == "connected"


async def test_a_failed_page_of_the_list_keeps_the_known_tools():
    async with streamable() as server, host_of({"url": server.url}) as host:
        before = [tool.name for tool in host.tools()]
        server.on["tools/list"] = answers.body(_first_page)
        await host.call("mcp__x__change", {"name": "fresh"})
        await until(lambda: host.servers["x"].problems)
        assert [tool.name for tool in host.tools()] == before


def _first_page(ask: Any) -> bytes:
    """One tool, and a next page that is the same one again."""
    if ask.params.get("cursor"):
        return b"nonsense"
    tool = {"name": "echo", "inputSchema": {"type": "object"}}
    result = {"resultType": "complete", "tools": [tool], "nextCursor": "2"}
    return json.dumps({"jsonrpc": "2.0", "id": ask.id, "result": result}).encode()


@pytest.mark.requirement("TRN-10")
async def test_an_overloaded_server_is_not_treated_as_a_legacy_one():
    overloaded = answers.first(1, answers.error(-32603, "busy", status=503))
    async with (
        streamable(on={"server/discover": overloaded}) as server,
        host_of({"url": server.url}) as host,
    ):
        await until(lambda: host.servers["x"].status == "connected")
        assert host.servers["x"].protocol_version == "2026-07-28"


async def test_a_token_repeated_by_a_server_is_not_shown():
    token = "Bearer sesame-open-sesame"
    async with (
        streamable() as server,
        host_of({"url": server.url, "headers": {"Authorization": token}}) as host,
    ):
        server.on["tools/call"] = answers.body(
            lambda ask: b"you sent " + ask.headers["Authorization"].encode(),
            headers={"Content-Type": "text/plain"},
            status=500,
        )
        with pytest.raises(HttpError) as caught:
            await host.call("mcp__x__echo", {"text": "?"})
        assert "sesame" not in str(caught.value)


async def test_after_a_401_the_error_contains_the_challenge():
    async with streamable() as server, host_of({"url": server.url}) as host:
        server.on["*"] = answers.challenge(401, 'Bearer realm="here"')
        with pytest.raises(HttpError):
            await host.call("mcp__x__echo", {"text": "?"})
        await until(lambda: host.servers["x"].status == "needs-auth")
        error = host.servers["x"].error
        assert isinstance(error, SignInNeeded)
        assert (error.status, error.challenge) == (401, 'Bearer realm="here"')


async def test_a_silent_connection_is_pinged_and_reconnected(monkeypatch):
    monkeypatch.setattr("dragoman.connections.connection.CHECK_SECONDS", 0.2)
    async with http_sse() as server, FaultProxy(server.port) as proxy:
        entry = {"type": "sse", "url": f"http://127.0.0.1:{proxy.port}/sse"}
        async with host_of(entry) as host:
            proxy.down.black_hole()
            for _ in range(3):
                with pytest.raises((CallTimeout, ConnectionLost)):
                    await host.call("mcp__x__add", {"a": 1, "b": 2}, timeout_seconds=0.1)
            await until(lambda: host.servers["x"].phase == "reconnecting")
            proxy.heal()
            assert (await host.call("mcp__x__add", {"a": 1, "b": 2})).text == "3"
