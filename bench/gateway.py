"""`python -m bench.gateway [--mcp-proxy PROGRAM]`: the gateway beside other proxies.

Each fronts the same minimal stdio server and is called over streamable HTTP by the same bare client, in a
session of revision 2025-06-18: one call at a time (latency), then 64 at once (calls per second, and CPU of
the proxy per call). The gateway checks a token, decides by an allow rule and writes the audit log. At the
end, `--clients` sessions are opened side by side, each calls once, and the memory of one is shown.

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
import time
from pathlib import Path
from typing import Any

import aiohttp

HERE = Path(__file__).parent
MINIMAL = [sys.executable, "-S", "-E", str(HERE / "servers" / "minimal.py")]
REVISION = "2025-06-18"
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
TICKS = os.sysconf("SC_CLK_TCK")
FASTMCP = """
import sys
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy
create_proxy(StdioTransport(sys.argv[2], sys.argv[3:])).run(
    transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="ERROR"
)
"""
GATEWAY = """
import asyncio, sys
from dragoman import Host
from dragoman.gateway.access import fixed_tokens, with_token
from dragoman.gateway.app import HttpOptions, serve_http
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.questions import ClientQuestions
from dragoman.gateway.settings import CallerEntry

async def main():
    questions = ClientQuestions()
    entry = {"command": sys.argv[2], "args": sys.argv[3:]}
    rules = {"allow": ["mcp__s"]}
    async with Host({"s": entry}, interaction=questions, sampler=questions, rules=rules, audit=True) as host:
        await host.ready()
        gateway = Gateway(host, questions, plain_names=True)
        reporting = asyncio.create_task(gateway.run())
        identify = with_token(fixed_tokens({"bench": CallerEntry(token="0123456789abcdef")}))
        async with serve_http(gateway, HttpOptions(identify=identify, port=int(sys.argv[1]))):
            await asyncio.Event().wait()

asyncio.run(main())
"""


def commands(port: int, mcp_proxy: str | None) -> dict[str, list[str]]:
    found = {
        "Dragoman": [sys.executable, "-c", GATEWAY, str(port), *MINIMAL],
        "FastMCP": [sys.executable, "-c", FASTMCP, str(port), *MINIMAL],
    }
    if mcp_proxy is not None:
        found["mcp-proxy"] = [mcp_proxy, "--port", str(port), "--log-level", "ERROR", "--", *MINIMAL]
    return found


class Session:
    """One client's session, over bare HTTP."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http, self._url = http, url
        self._headers = {**HEADERS, "Authorization": "Bearer 0123456789abcdef"}
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


async def measure(url: str, pid: int, seconds: float) -> dict[str, float]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=100)) as http:
        await ready(http, url)
        session = Session(http, url)
        await session.open()
        times: list[float] = []
        end = time.perf_counter() + seconds / 2
        while time.perf_counter() < end:
            began = time.perf_counter()
            await session.call()
            times.append(time.perf_counter() - began)
        count = 0

        async def work() -> None:
            nonlocal count
            while time.perf_counter() < end:
                await session.call()
                count += 1

        used, began = cpu_seconds(pid), time.perf_counter()
        end = began + seconds
        await asyncio.gather(*(work() for _ in range(64)))
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.gateway")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--mcp-proxy", help="the program of an installed mcp-proxy")
    chosen = parser.parse_args()
    samples: dict[str, list[dict[str, float]]] = {}
    held = ""
    for _ in range(chosen.rounds):
        for name in commands(0, chosen.mcp_proxy):
            port = free_port()
            command = commands(port, chosen.mcp_proxy)[name]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                url = f"http://127.0.0.1:{port}/mcp"
                samples.setdefault(name, []).append(asyncio.run(measure(url, process.pid, chosen.seconds)))
                if name == "Dragoman" and not held:
                    held = asyncio.run(hold(url, process.pid, chosen.clients))
            finally:
                process.terminate()
                process.wait()
    shown = {
        name: {key: statistics.median(s[key] for s in each) for key in each[0]}
        for name, each in samples.items()
    }
    print(f"{'':12}{'calls/s':>10}{'CPU µs/call':>14}{'one at a time, µs':>20}")
    for name, each in shown.items():
        print(f"{name:12}{each['calls_per_s']:10.0f}{each['cpu_us']:14.0f}{each['latency_us']:20.0f}")
    own = shown.pop("Dragoman")
    for name, each in shown.items():
        print(
            f"Dragoman ÷ {name}: {own['calls_per_s'] / each['calls_per_s']:.1f} × the calls, "
            f"{own['latency_us'] / each['latency_us']:.2f} × the latency"
        )
    print(held)


if __name__ == "__main__":
    main()
