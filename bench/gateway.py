"""`python -m bench.gateway [--mcp-proxy PROGRAM]`: the gateway beside other proxies.

Each fronts the same minimal stdio server and is called over streamable HTTP by the same bare client, in
sessions of revision 2025-06-18: one call at a time (latency), then 64 at once (calls per second, and CPU of
the proxy per call). The gateway is `dragoman serve`: it checks a token, decides by an allow rule and writes
the audit log. `bridge` is an HTTP server that passes the bytes of each call to the stdio server and back, and
does nothing else: what a proxy takes longer than that is the latency that it adds. At the end, `--clients`
sessions are opened in parallel, each calls once, and the memory of one is shown.

The client sends prepared bytes and looks for the end of each response, so that it is never the slowest part.
`mcp-proxy` needs another version of the SDK than this environment has: give the program of one that is
installed elsewhere (`pip install mcp-proxy==0.13.0`).
"""

import argparse
import asyncio
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp

HERE = Path(__file__).parent
MINIMAL = [sys.executable, "-S", "-E", str(HERE / "servers" / "minimal.py")]
REVISION = "2025-06-18"
TOKEN = "0123456789abcdef"
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
TICKS = os.sysconf("SC_CLK_TCK")
WARM_UP = 300
"""Calls that are not measured."""
FASTMCP = """
import sys
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy
create_proxy(StdioTransport(sys.argv[2], sys.argv[3:])).run(
    transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="ERROR"
)
"""
BRIDGE = """
import asyncio, sys
from aiohttp import web

async def main():
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(*sys.argv[2:], stdin=pipe, stdout=pipe)
    waiting = asyncio.Queue()

    async def answer(request):
        reply = asyncio.get_running_loop().create_future()
        body = await request.read()
        headers = {"Mcp-Session-Id": "one"}
        if b'"id"' not in body:
            return web.Response(status=202)
        waiting.put_nowait(reply)
        server.stdin.write(body + b"\\n")
        return web.Response(body=await reply, content_type="application/json", headers=headers)

    app = web.Application()
    app.router.add_post("/mcp", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(sys.argv[1])).start()
    async for line in server.stdout:
        waiting.get_nowait().set_result(line)

asyncio.run(main())
"""


def commands(port: int, folder: Path, mcp_proxy: str | None) -> dict[str, list[str]]:
    server = {"command": MINIMAL[0], "args": MINIMAL[1:]}
    (folder / ".dragoman").mkdir()
    settings = {"mcpServers": {"s": server}, "permissions": {"allow": ["mcp__s"]}}
    (folder / ".dragoman" / "settings.json").write_text(json.dumps(settings))
    callers = folder / "gateway.json"
    callers.write_text(json.dumps({"callers": {"bench": {"token": TOKEN}}}))
    callers.chmod(0o600)
    serve = ["serve", "--http", f"127.0.0.1:{port}", "--config", str(callers), "--plain-names"]
    found = {
        "bridge": [sys.executable, "-c", BRIDGE, str(port), *MINIMAL],
        "Dragoman": [sys.executable, "-m", "dragoman", *serve],
        "FastMCP": [sys.executable, "-c", FASTMCP, str(port), *MINIMAL],
    }
    if mcp_proxy is not None:
        found["mcp-proxy"] = [mcp_proxy, "--port", str(port), "--log-level", "ERROR", "--", *MINIMAL]
    return found


class Connection(asyncio.Protocol):
    """One client's session over one connection, with as little work as possible for each call."""

    def __init__(self, host: str) -> None:
        self._head = (
            f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n"
            + "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
        ).encode()
        self._received = b""
        self._number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._response.done():
            self._response.set_exception(ConnectionError("the connection was closed"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\ncontent-length: *([0-9]+)", head)
        is_whole = len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n")
        if found and is_whole and not self._response.done():
            self._received = b""
            self._response.set_result((head, body))

    def _post(self, message: bytes) -> asyncio.Future[tuple[bytes, bytes]]:
        self._response: asyncio.Future[tuple[bytes, bytes]] = asyncio.get_running_loop().create_future()
        self._transport.write(b"%bContent-Length: %d\r\n\r\n%b" % (self._head, len(message), message))
        return self._response

    async def open(self) -> None:
        about = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}
        head, _ = await self._post(json.dumps(message).encode())
        session = re.search(rb"(?i)\n(mcp-session-id: *[^\r]+\r\n)", head + b"\r\n")
        self._head += (session[1] if session else b"") + f"MCP-Protocol-Version: {REVISION}\r\n".encode()
        await self._post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    async def call(self) -> None:
        self._number += 1
        _, body = await self._post(
            b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo",'
            b'"arguments":{"text":"hello"}}}' % self._number
        )
        assert b'"hello"' in body, body[:500]


async def connected(port: int) -> Connection:
    host, loop = f"127.0.0.1:{port}", asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: Connection(host), "127.0.0.1", port)
    await connection.open()
    return connection


class Session:
    """One client's session, over bare HTTP."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http, self._url = http, url
        self._headers = {**HEADERS, "Authorization": f"Bearer {TOKEN}"}
        self._number = 0

    async def open(self) -> None:
        about = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
        headers, _ = await self._post({"id": 0, "method": "initialize", "params": about})
        self._headers["Mcp-Session-Id"] = headers.get("Mcp-Session-Id", "")
        self._headers["MCP-Protocol-Version"] = REVISION
        await self._post({"method": "notifications/initialized"})

    async def call(self) -> None:
        self._number += 1
        params = {"name": "echo", "arguments": {"text": "hello"}}
        _, body = await self._post({"id": self._number, "method": "tools/call", "params": params})
        assert b'"hello"' in body, body[:500]

    async def _post(self, message: dict[str, Any]) -> tuple[Any, bytes]:
        data = json.dumps({"jsonrpc": "2.0", **message})
        async with self._http.post(self._url, data=data, headers=self._headers) as response:
            return response.headers, await response.read()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_bytes(pid: int) -> int:
    found = re.search(r"^Rss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


async def ready(http: aiohttp.ClientSession, url: str) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            session = Session(http, url)
            await session.open()
            await session.call()
            return
        except (aiohttp.ClientError, AssertionError, KeyError):
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.1)


async def measure(port: int, pid: int, seconds: float) -> dict[str, float]:
    async with aiohttp.ClientSession() as http:
        await ready(http, f"http://127.0.0.1:{port}/mcp")
    connections = [await connected(port) for _ in range(64)]
    for _ in range(WARM_UP):
        await connections[0].call()
    times: list[float] = []
    end = time.perf_counter() + seconds / 2
    while time.perf_counter() < end:
        began = time.perf_counter()
        await connections[0].call()
        times.append(time.perf_counter() - began)
    count = 0

    async def work(connection: Connection) -> None:
        nonlocal count
        while time.perf_counter() < end:
            await connection.call()
            count += 1

    used, began = cpu_seconds(pid), time.perf_counter()
    end = began + seconds
    await asyncio.gather(*map(work, connections))
    took = time.perf_counter() - began
    return {
        "latency_us": statistics.median(times) * 1e6,
        "calls_per_s": count / took,
        "cpu_us": (cpu_seconds(pid) - used) / count * 1e6,
    }


async def hold(url: str, pid: int, clients: int) -> str:
    """So many clients with a session each; the memory that one costs."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=200)) as http:
        await ready(http, url)
        before = memory_bytes(pid)
        sessions = [Session(http, url) for _ in range(clients)]
        for batch in range(0, clients, 100):
            await asyncio.gather(*(each.open() for each in sessions[batch : batch + 100]))
        await asyncio.gather(*(each.call() for each in sessions))
        cost = (memory_bytes(pid) - before) / clients
        return f"{clients} clients held, all called: {cost / 1024:.1f} KB each"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(name: str, mcp_proxy: str | None, seconds: float, clients: int) -> tuple[dict[str, float], str]:
    """What was measured, and the memory of clients if so many are to be held."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = commands(port, Path(folder), mcp_proxy)[name]
        environ = {**os.environ, "HOME": folder}
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environ, cwd="/")
        try:
            sample = asyncio.run(measure(port, process.pid, seconds))
            url = f"http://127.0.0.1:{port}/mcp"
            return sample, asyncio.run(hold(url, process.pid, clients)) if clients else ""
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.gateway")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--mcp-proxy", help="the program of an installed mcp-proxy")
    chosen = parser.parse_args()
    samples: dict[str, list[dict[str, float]]] = {}
    held = ""
    names = ["bridge", "Dragoman", "FastMCP", *(["mcp-proxy"] if chosen.mcp_proxy else [])]
    for _ in range(chosen.rounds):
        for name in names:
            clients = chosen.clients if name == "Dragoman" and not held else 0
            sample, text = run(name, chosen.mcp_proxy, chosen.seconds, clients)
            samples.setdefault(name, []).append(sample)
            held = held or text
    shown = {
        name: {key: statistics.median(s[key] for s in each) for key in each[0]}
        for name, each in samples.items()
    }
    bridge = shown["bridge"]["latency_us"]
    print(f"{'':12}{'calls/s':>10}{'CPU µs/call':>14}{'one at a time, µs':>20}{'added, µs':>12}")
    for name, each in shown.items():
        added = each["added_us"] = each["latency_us"] - bridge
        numbers = f"{each['calls_per_s']:10.0f}{each['cpu_us']:14.0f}{each['latency_us']:20.0f}{added:12.0f}"
        print(f"{name:12}{numbers}")
    own = shown.pop("Dragoman")
    del shown["bridge"]
    for name, each in shown.items():
        print(
            f"Dragoman ÷ {name}: {own['calls_per_s'] / each['calls_per_s']:.1f} × the calls, "
            f"{own['added_us'] / each['added_us']:.2f} × the added latency"
        )
    print(held)


if __name__ == "__main__":
    main()
