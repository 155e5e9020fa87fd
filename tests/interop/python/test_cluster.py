"""examples/gateway-cluster: two replicas and Redis behind nginx, and what is lost when one is killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.gateway import Client, Json, Reply
from tests.integration.waiting import until

ROOT = Path(__file__).parents[3]
LOAD = 16
pytestmark = [
    pytest.mark.requirement("GWY-4"),
    pytest.mark.needs("redis-server", "nginx"),
    pytest.mark.slow,
    pytest.mark.timeout(90),
]


@dataclass
class Cluster:
    url: str
    token: str
    pids: dict[str, int]

    async def kill(self, name: str) -> None:
        """Returns when it is gone."""
        os.kill(self.pids[name], signal.SIGKILL)
        await until(lambda: not Path(f"/proc/{self.pids[name]}").exists())


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    entry = {"command": sys.executable, "args": [str(ROOT / "tests/servers/works.py")]}
    servers, folder = tmp_path / "servers.json", tmp_path / "cluster"
    servers.write_text(json.dumps({"mcpServers": {"up": entry}}))
    options = ["--mcp-config", str(servers), "--permission-mode", "bypassPermissions"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(ROOT / "examples/gateway-cluster/start.py")),
        *("--port", "0", "--folder", str(folder), "--", *options),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        pids: dict[str, int] = {}
        while not (line := (await process.stdout.readline()).decode()).startswith("The gateway is at"):
            assert line, "\n".join(each.read_text() for each in folder.glob("*.log"))
            name, pid = line.split()
            pids[name] = int(pid)
        address = re.search(r"http://\S+/mcp", line)
        assert address is not None
        settings = json.loads((folder / "gateway.json").read_text())
        yield Cluster(address[0], settings["callers"]["team"]["token"], pids)
    finally:
        process.terminate()
        await process.wait()


@dataclass
class Load:
    """Calls that are made all the time by several clients."""

    done: int = 0
    failures: list[str] = field(default_factory=list[str])

    def note(self, reply: Reply) -> None:
        error = failure_in(reply)
        if error is None:
            self.done += 1
        else:
            self.failures.append(error)

    async def more(self, count: int) -> None:
        goal = self.done + count
        await until(lambda: self.done >= goal, 30)


def failure_in(reply: Reply) -> str | None:
    """None if the call has a result; else the error, which must be one that a person can read."""
    message: Json = reply.last
    if "result" in message:
        result = message["result"]
        return result["content"][0]["text"] if result.get("isError") else None
    return str(message["error"])


@contextlib.asynccontextmanager
async def load_on(cluster: Cluster, tool: str = "up__work") -> AsyncIterator[Load]:
    load = Load()

    async def work() -> None:
        async with Client(cluster.url, cluster.token) as client:
            while True:
                load.note(await client.modern("tools/call", {"name": tool, "arguments": {}}))

    tasks = [asyncio.create_task(work()) for _ in range(LOAD)]
    try:
        yield load
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [each for each in ended if not isinstance(each, asyncio.CancelledError)] == []


async def test_a_legacy_client_is_served_by_any_replica(cluster: Cluster) -> None:
    async with Client(cluster.url, cluster.token) as client:
        await client.initialize()
        pids: set[str] = set()
        for _ in range(8):
            reply = await client.legacy("tools/call", {"name": "up__pid"})
            pids.add(reply.last["result"]["content"][0]["text"])
        assert len(pids) == 2  # a process of the server at each replica
        await cluster.kill("replica-a")
        for _ in range(8):
            assert failure_in(await client.legacy("tools/call", {"name": "up__pid"})) is None


async def test_a_killed_replica_fails_only_its_running_calls(cluster: Cluster) -> None:
    async with load_on(cluster) as load:
        await load.more(100)
        await cluster.kill("replica-a")
        await load.more(200)
    assert len(load.failures) <= LOAD
    assert set(load.failures) <= {
        "the replica that answered the request was lost; the call may have been carried out"
    }


async def test_a_killed_redis_fails_no_call_of_a_caller_without_a_limit(cluster: Cluster) -> None:
    async with load_on(cluster) as load, Client(cluster.url, cluster.token) as client:
        await client.initialize()
        await load.more(100)
        await cluster.kill("redis-server")
        await load.more(200)
        async with Client(cluster.url, cluster.token) as new:
            refused = await new.legacy(
                "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
            )
        assert (refused.status, "store does not answer" in refused.last["error"]) == (503, True)
    assert load.failures == []


async def test_a_killed_upstream_server_fails_only_its_running_calls(cluster: Cluster) -> None:
    async with load_on(cluster) as load, Client(cluster.url, cluster.token) as client:
        await load.more(100)
        reply = await client.modern("tools/call", {"name": "up__pid", "arguments": {}})
        os.kill(int(reply.last["result"]["content"][0]["text"]), signal.SIGKILL)
        await load.more(200)
    assert len(load.failures) <= LOAD
    lost = "the connection to up was lost: it was ended by SIGKILL; the request may have run"
    assert all(each.startswith(lost) for each in load.failures), load.failures
