"""T18: A server that starts slowly or never delays no other server, and has no access to the terminal."""

import time

import pytest

from dragoman import Host
from dragoman.errors import ConnectTimeout
from tests.e2e.command import config
from tests.e2e.forked import Terminal
from tests.servers import stdio_server
from tests.servers.web import answers, http_sse, streamable, websocket
from tests.torture.bystander_host import at_once, until

SHORT = {"MCP_TIMEOUT": 700, "DRAGOMAN_PROBE_TIMEOUT_MS": 200}
SHORT_PROBE = {"DRAGOMAN_PROBE_TIMEOUT_MS": "300"}
SITES = {"http": streamable, "sse": http_sse, "ws": websocket}


@pytest.mark.requirement("LIF-2", "LIF-3")
@pytest.mark.parametrize("words", [(), ("prompts",)], ids=["silent", "prompting"])
async def test_t18_a_server_that_never_starts_fails_at_the_timeout_and_delays_no_other(bystander_host, words):
    began = time.monotonic()
    # The bystander_host is entered only after the bystander has answered twenty calls.
    async with bystander_host(
        stdio_server("starts_slowly.py", "never", *words), settings=SHORT, wait=False
    ) as a:
        assert time.monotonic() - began < 0.7 + 2
        async with at_once(0.7 + 1.5):
            await a.host.ready(timeout=10)
        error = a.view.error
        assert isinstance(error, ConnectTimeout)
        assert "no answer within 0.7 s" in str(error)
        assert "MCP_TIMEOUT" in (error.hint or "")
        if words:
            assert "Password:" in error.stderr_tail, "what it waits for is shown to the person"


@pytest.mark.requirement("LIF-2")
async def test_t18_a_server_that_starts_late_is_used_once_it_is_ready_and_the_others_before(bystander_host):
    async with bystander_host(stdio_server("starts_slowly.py", "0.6"), wait=False) as a:
        await a.bystander.call_often(20)
        assert a.view.status == "pending"
        assert a.view.phase in ("connecting", "handshaking")
        await until(lambda: a.view.status == "connected")
        await a.serves_still()


@pytest.mark.requirement("LIF-2", "LIF-3")
@pytest.mark.parametrize("kind", SITES)
async def test_t18_a_remote_server_that_never_answers_fails_at_the_same_timeout(bystander_host, kind):
    async with (
        SITES[kind](on={"*": answers.never()}) as server,
        bystander_host({"type": kind, "url": server.url}, settings=SHORT, wait=False) as a,
    ):
        async with at_once(0.7 + 1.5):
            await a.host.ready(timeout=10)
        assert isinstance(a.view.error, ConnectTimeout)
        assert "MCP_TIMEOUT" in (a.view.error.hint or "")


@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize("said_in", ["code", "environment"])
async def test_t18_the_connect_timeout_can_be_configured(said_in, monkeypatch):
    """It starts after half a second: too late for one, early enough for the other."""
    statuses = []
    for milliseconds in (250, 20_000):
        settings = {"MCP_TIMEOUT": milliseconds} if said_in == "code" else None
        if said_in == "environment":
            monkeypatch.setenv("MCP_TIMEOUT", str(milliseconds))
        async with Host({"late": stdio_server("starts_slowly.py", "0.5")}, settings=settings) as host:
            statuses.append((await host.ready(timeout=20))["late"].status)
    assert statuses == ["failed", "connected"]


@pytest.mark.slow
@pytest.mark.requirement("LIF-2")
async def test_t18_six_servers_that_never_start_use_no_connect_slot_of_others(bystander_host):
    """Three local servers start at the same time; the last one starts long before the first one times out."""
    others = {f"never{n}": stdio_server("starts_slowly.py", "never") for n in range(6)}
    others["last"] = stdio_server("starts_slowly.py", "0")
    async with bystander_host(others=others, settings={"MCP_TIMEOUT": 20_000}, wait=False) as a:
        await until(lambda: a.host.servers["last"].status == "connected", 8)
        statuses = {view.status for name, view in a.host.servers.items() if name.startswith("never")}
        assert statuses == {"pending"}


@pytest.mark.slow
def test_t18_a_server_has_no_access_to_the_terminal():
    """The command runs in a pseudo-terminal that is its controlling terminal."""
    servers = config(x=stdio_server("wants_a_terminal.py"))
    with Terminal("call", "mcp__x__terminals", "--mcp-config", servers) as terminal:
        output = terminal.finish()
    assert terminal.process.returncode == 0, output
    assert "found: none" in output


@pytest.mark.slow
def test_t18_a_server_does_not_read_what_the_person_types():
    servers = config(x=stdio_server("starts_slowly.py", "0.7", "prompts"))
    with Terminal(
        "call", "mcp__x__echo", "message=hello", "--mcp-config", servers, env=SHORT_PROBE
    ) as terminal:
        terminal.type(b"my password\n")
        output = terminal.finish()
    assert terminal.process.returncode == 0, output
    assert "hello" in output
    assert "Password:" not in output, "a prompt is not shown as if it were ours"
