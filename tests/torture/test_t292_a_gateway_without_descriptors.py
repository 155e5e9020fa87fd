"""T292: more connections than a gateway has file descriptors for; and its shutdown while a call does not
end."""

import asyncio
import resource
import signal
import socket
import time

import pytest

from dragoman.gateway import app
from dragoman.testing import InMemoryServer
from tests.e2e.test_serve import InstalledServing
from tests.gateway import Client, gateway_of
from tests.integration.waiting import until

pytestmark = pytest.mark.requirement("GWY-3")
DESCRIPTORS = 100
TEXT = b"no further connections can be accepted: Too many open files. Raise `ulimit -n`."
DRAIN_SECONDS = 3.0


async def test_t292_the_shortage_is_reported_once_and_the_gateway_continues():
    async with InstalledServing("--mcp-config", "demo") as served:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))
        port = int(served.url.split(":")[2].removesuffix("/mcp"))
        opened = [socket.create_connection(("127.0.0.1", port)) for _ in range(DESCRIPTORS + 20)]
        assert served.process.stderr is not None
        said = list[bytes]()
        async with asyncio.timeout(20):
            while not said or TEXT not in said[-1]:
                said.append(await served.process.stderr.readline())
        for each in opened:
            each.close()
        async with Client(f"http://127.0.0.1:{port}/healthz", None) as client, asyncio.timeout(20):
            assert (await client.post(b"", "GET")).status == 200
        served.process.send_signal(signal.SIGTERM)
        said += (await served.process.communicate())[1].splitlines(keepends=True)
    assert said.pop() == b"The gateway has ended.\n"
    assert [
        line for line in said if not line.startswith(b"! ")
    ] == []  # also about files that cannot be opened
    assert [TEXT in line for line in said].count(True) == 1


async def test_t292_a_call_that_does_not_end_delays_the_shutdown_at_most_by_the_limit(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(app, "DRAIN_SECONDS", DRAIN_SECONDS)
    box, begun = InMemoryServer("box"), list[str]()

    async def wait(*_: object) -> str:
        begun.append("call")
        return await asyncio.Event().wait() or ""

    box.add_tool("wait", wait)
    async with gateway_of({"box": box}) as running:
        client = Client(running.url)
        calling = asyncio.create_task(client.modern("tools/call", {"name": "box__wait", "arguments": {}}))
        await until(lambda: begun)
        end = time.monotonic()
    assert DRAIN_SECONDS <= time.monotonic() - end < 2 * DRAIN_SECONDS
    assert (await asyncio.wait([calling], timeout=10))[0]
    calling.exception()
    await client.http.close()
