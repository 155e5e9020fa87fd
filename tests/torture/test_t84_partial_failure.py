"""T84: A server that is unavailable, hangs or exits affects its own calls only."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.gateway import Client, gateway_of
from tests.integration.waiting import until
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-1")
SERVERS = Path(__file__).parents[1] / "servers"


def local(name: str, *words: str) -> dict[str, object]:
    return {"command": sys.executable, "args": [str(SERVERS / name), *words]}


async def test_t84_other_servers_are_served_while_one_is_unavailable_and_one_hangs():
    servers = {
        "missing": {"command": "/nonexistent/server"},
        "silent": local("silent.py"),
        "office": Office(),
    }
    settings = {"MCP_TIMEOUT": 1000}
    async with gateway_of(servers, settings=settings) as running, Client(running.url) as client:
        holding = asyncio.create_task(client.modern("tools/call", {"name": "office__hold"}))
        replies = [await client.modern("tools/call", {"name": "office__ledger"}) for _ in range(5)]
        assert [reply.last["result"].get("isError", False) for reply in replies] == [False] * 5
        listed = await client.modern("tools/list")
        assert {tool["name"].partition("__")[0] for tool in listed.last["result"]["tools"]} == {"office"}
        gone = await client.modern("tools/call", {"name": "missing__any"})
        assert gone.last["error"]["message"] == "Unknown tool: missing__any"
        client.url = f"http://127.0.0.1:{running.port}/metrics"
        metrics = (await client.http.get(client.url, headers=client.headers)).text()
        text = await metrics
        assert 'dragoman_server_connected{server="missing"} 0' in text
        assert 'dragoman_server_connected{server="office"} 1' in text
        holding.cancel()


async def test_t84_a_server_that_exits_during_a_call_is_named_and_reconnected():
    async with gateway_of({"dies": local("exits.py", "call", "3"), "office": Office()}) as running:  # noqa: SIM117
        async with Client(running.url) as client:
            dead = await client.modern("tools/call", {"name": "dies__act", "arguments": {}})
            assert dead.last["result"]["isError"] is True
            assert dead.last["result"]["content"][0]["text"] == (
                "the connection to dies was lost: it exited with code 3; the request may have run"
            )
            await until(lambda: running.host.servers["dies"].status == "connected")
            assert "result" in (await client.modern("tools/call", {"name": "office__ledger"})).last
