"""T754: a tool is called while its server is being connected: enabled again, or replaced because its entry
has changed. The call waits for the server. (A gateway reported an unknown tool, a host that the server is
being replaced.)."""

import asyncio
import json
from pathlib import Path

import pytest

from dragoman import Host
from dragoman.config.scopes import Sources
from tests.gateway import Client, gateway_of
from tests.integration.waiting import until
from tests.servers import stdio_server

pytestmark = pytest.mark.requirement("GWY-1")
ECHO = {"name": "calm__echo", "arguments": {"text": "x"}}


def write(home: Path, variable: str) -> None:
    file = home / ".dragoman" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        json.dumps(
            {"mcpServers": {"calm": {**stdio_server("well_behaved.py"), "env": {"VARIABLE": variable}}}}
        )
    )


async def test_t754_a_call_waits_for_a_server_that_is_enabled_again():
    async with (
        gateway_of({"calm": stdio_server("well_behaved.py")}) as running,
        Client(running.url) as client,
    ):
        await running.host.disable("calm")
        reply = await client.modern("tools/call", ECHO)
        assert reply.last["error"]["message"] == "Unknown tool: calm__echo"
        enabling = asyncio.create_task(running.host.enable("calm"))
        await until(lambda: running.host.servers["calm"].status == "pending")
        reply = await client.modern("tools/call", ECHO)
        assert "result" in reply.last, reply.last
        await enabling


async def test_t754_a_call_waits_for_a_server_whose_entry_has_changed(home: Path):
    write(home, "1")
    async with gateway_of(Sources.here(home)) as running, Client(running.url) as client:
        before = running.host.servers["calm"]
        write(home, "2")
        reloading = asyncio.create_task(running.host.reload())
        await until(lambda: running.host.servers["calm"].status == "pending")
        reply = await client.modern("tools/call", ECHO)
        assert "result" in reply.last, reply.last
        await reloading
        assert running.host.servers["calm"].pid != before.pid


async def test_t754_a_call_of_a_program_waits_for_its_server(home: Path):
    write(home, "1")
    async with Host(Sources.here(home), permission_mode="bypassPermissions") as host:
        await host.ready()
        for variable in ("2", "3"):
            write(home, variable)
            reloading = asyncio.create_task(host.reload())
            await until(lambda: host.servers["calm"].status == "pending")
            assert (await host.call("mcp__calm__echo", {"text": "x"})).error is None
            await reloading


async def test_t754_a_tool_that_no_server_has_is_unknown_at_once():
    async with (
        gateway_of({"calm": stdio_server("well_behaved.py")}) as running,
        Client(running.url) as client,
    ):
        reply = await client.modern("tools/call", {"name": "calm__other", "arguments": {}})
        assert reply.last["error"]["message"] == "Unknown tool: calm__other"
