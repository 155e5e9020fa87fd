"""`python -m bench.cluster`: two replicas of the gateway with Redis, beside one alone.

Needs the program redis-server. `--rate` calls per second are made for each replica, in a session of revision
2025-06-18 whose calls go to the replicas in turn: a replica that has less to do spends more on each call, so
only equal loads can be compared. Shown are CPU per call (of all replicas, and of Redis), and commands sent to
Redis per call, for a caller without a limit and for one whose calls are counted.
At the end, `--clients` sessions are opened, and the memory that one takes is shown: at a replica that it has
used, and in Redis.
"""

import argparse
import asyncio
import contextlib
import itertools
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import aiohttp

from bench.gateway import MINIMAL, Session, cpu_seconds, free_port, memory_bytes, ready

REPLICA = """
import asyncio, gc, sys
from dragoman import Host
from dragoman.cli.commands.serve import GC_THRESHOLDS
from dragoman.gateway.access import fixed_tokens, with_token
from dragoman.gateway.app import HttpOptions, serve_http
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.questions import ClientQuestions
from dragoman.gateway.settings import CallerEntry, StoreEntry
from dragoman.gateway.store.redis import RedisStore

async def main():
    port, redis, limit = map(int, sys.argv[1:4])
    entry = StoreEntry(redis=f"redis://127.0.0.1:{redis}/0", key="a-key-of-thirty-two-characters-or-more")
    store = RedisStore(entry) if redis else None
    questions = ClientQuestions()
    entry = {"command": sys.argv[4], "args": sys.argv[5:]}
    rules = {"allow": ["mcp__s"]}
    async with Host({"s": entry}, interaction=questions, sampler=questions, rules=rules, audit=True) as host:
        await host.ready()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)  # as `dragoman serve` does
        gateway = Gateway(host, questions, plain_names=True, store=store)
        reporting = asyncio.create_task(gateway.run())
        caller = CallerEntry(token="0123456789abcdef", calls_per_minute=limit or None)
        identify = with_token(fixed_tokens({"bench": caller}))
        async with serve_http(gateway, HttpOptions(identify=identify, port=port)):
            await asyncio.Event().wait()

asyncio.run(main())
"""


@contextlib.contextmanager
def running(*words: str) -> Iterator[int]:
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def cluster(
    replicas: int, limit: int, *, with_redis: bool
) -> Iterator[tuple[list[int], list[int], int, int]]:
    """Ports and pids of the replicas, port and pid of Redis (0: none)."""
    program = shutil.which("redis-server") or sys.exit("redis-server is not installed")
    with contextlib.ExitStack() as stack:
        redis, redis_pid = 0, 0
        if with_redis:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            redis = free_port()
            words = [program, "--port", str(redis), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
            redis_pid = stack.enter_context(running(*words))
        ports = [free_port() for _ in range(replicas)]
        pids = [
            stack.enter_context(
                running(sys.executable, "-c", REPLICA, *map(str, (port, redis, limit)), *MINIMAL)
            )
            for port in ports
        ]
        yield ports, pids, redis, redis_pid


def redis_info(port: int) -> str:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"INFO everything\r\nQUIT\r\n")
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode(errors="replace")


def redis_number(port: int, pattern: str) -> int:
    return sum(map(int, re.findall(pattern, redis_info(port))))


COMMANDS = r"cmdstat_(?:evalsha|getex|set|publish|unlink|hset|hgetall|eval|xadd):calls=(\d+)"
"""Those that replicas send; those inside the script are not among them."""


async def measure(replicas: int, limit: int, seconds: float, rate: int, *, with_redis: bool) -> str:
    with cluster(replicas, limit, with_redis=with_redis) as (ports, pids, redis, redis_pid):
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=200)) as http:
            urls = [f"http://127.0.0.1:{port}/mcp" for port in ports]
            for url in urls:
                await ready(http, url)
            session = InTurn(http, urls)
            await session.open()
            for _ in range(200):
                await session.call()
            everything = [*pids, *([redis_pid] if redis_pid else [])]
            before = {pid: cpu_seconds(pid) for pid in everything}
            commands = redis_number(redis, COMMANDS) if redis else 0
            began, count = time.perf_counter(), 0

            async with asyncio.TaskGroup() as calls:
                while (passed := time.perf_counter() - began) < seconds:
                    for _ in range(int(passed * rate * replicas) - count):
                        calls.create_task(session.call())
                        count += 1
                    await asyncio.sleep(0.005)
            took = time.perf_counter() - began
            used = {pid: cpu_seconds(pid) - before[pid] for pid in everything}
            commands = redis_number(redis, COMMANDS) - commands if redis else 0
    own = sum(used[pid] for pid in pids) / count * 1e6
    of_redis = used.get(redis_pid, 0.0) / count * 1e6
    return (
        f"{count / took:6.0f} calls/s   replicas {own:5.0f} us/call   "
        f"Redis {of_redis:4.0f} us/call, {commands / count:.3f} commands/call"
    )


class InTurn(Session):
    """A session whose messages go to the replicas in turn."""

    def __init__(self, http: aiohttp.ClientSession, urls: list[str]) -> None:
        super().__init__(http, urls[0])
        self._urls = itertools.cycle(urls)

    async def _post(self, message: dict[str, Any]) -> tuple[Any, bytes]:
        self._url = next(self._urls)
        return await super()._post(message)


async def hold(clients: int) -> str:
    with cluster(2, 0, with_redis=True) as (ports, pids, redis, _):
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=200)) as http:
            urls = [f"http://127.0.0.1:{port}/mcp" for port in ports]
            for url in urls:
                await ready(http, url)
            used = r"used_memory:(\d+)"
            before = [memory_bytes(pid) for pid in pids], redis_number(redis, used)
            sessions = [InTurn(http, urls) for _ in range(clients)]
            for batch in range(0, clients, 100):
                await asyncio.gather(*(each.open() for each in sessions[batch : batch + 100]))
            for batch in range(0, clients, 100):
                for _ in urls:
                    await asyncio.gather(*(each.call() for each in sessions[batch : batch + 100]))
            at_replicas = [memory_bytes(pid) - old for pid, old in zip(pids, before[0], strict=True)]
            in_redis = redis_number(redis, used) - before[1]
    each = sum(at_replicas) / len(pids) / clients / 1024
    stored = in_redis / clients
    return f"{clients} sessions, used at both replicas: {each:.1f} KB at each, {stored:.0f} B in Redis"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.cluster")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=1000)
    chosen = parser.parse_args()
    cases = {
        "one, alone": (1, 0, False),
        "one, Redis": (1, 0, True),
        "two, Redis": (2, 0, True),
        "two, Redis, counted": (2, 10_000_000, True),
    }
    for _ in range(chosen.rounds):
        for name, (replicas, limit, with_redis) in cases.items():
            found = measure(replicas, limit, chosen.seconds, chosen.rate, with_redis=with_redis)
            print(f"{name:20}", asyncio.run(found), flush=True)
    print(asyncio.run(hold(chosen.clients)))


if __name__ == "__main__":
    main()
