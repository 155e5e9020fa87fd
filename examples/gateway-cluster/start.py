"""Starts Redis, two replicas of the gateway, and nginx in front of them; ends all of them on Ctrl-C.

    python examples/gateway-cluster/start.py                                    with the demo server
    python examples/gateway-cluster/start.py -- --mcp-config servers.json       with your own

Needs the programs redis-server and nginx, and dragoman with the extra `gateway`. The token of the callers and
the key of the store are in gateway.json, in the folder that --folder names.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import sys
import urllib.request
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
START_SECONDS = 30


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=8930, help="port of nginx; 0: a free port")
    parser.add_argument(
        "--folder", type=Path, default=Path("gateway-cluster"), help="folder for files of the cluster"
    )
    parser.add_argument("options", nargs="*", metavar="-- OPTIONS", help="options of `dragoman serve`")
    given = parser.parse_args()
    given.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run(given.folder.resolve(), given.port, given.options or ["--mcp-config", "demo"]))


async def run(folder: Path, port: int, options: list[str]) -> None:
    with contextlib.ExitStack() as stack:
        ports = [port or reserved_port(stack), *(reserved_port(stack) for _ in range(3))]
        await run_programs(folder, ports, options)


async def run_programs(folder: Path, ports: list[int], options: list[str]) -> None:
    settings = write_settings(folder, ports[3])
    write_nginx(folder, ports)
    serve = [sys.executable, "-m", "dragoman", "serve", "--config", str(settings)]
    serve += ["--public-host", f"127.0.0.1:{ports[0]}", *options]
    commands = {
        "redis-server": redis_command(folder, ports[3]),
        "replica-a": [*serve, "--http", f"127.0.0.1:{ports[1]}"],
        "replica-b": [*serve, "--http", f"127.0.0.1:{ports[2]}"],
        "nginx": [program("nginx"), "-c", str(folder / "nginx.conf"), "-e", str(folder / "nginx-errors.log")],
    }
    stop_requested = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop_requested.set)
    async with contextlib.AsyncExitStack() as stack:
        for name, words in commands.items():
            await stack.enter_async_context(started(name, words, folder))
        for each in ports[1:3]:
            await until_ready(f"http://127.0.0.1:{each}/readyz")
        await until_ready(f"http://127.0.0.1:{ports[0]}/readyz")
        print(f"The gateway is at http://127.0.0.1:{ports[0]}/mcp; its token is in {settings}.", flush=True)
        await stop_requested.wait()


@contextlib.asynccontextmanager
async def started(name: str, words: list[str], folder: Path) -> AsyncGenerator[None]:
    """Runs a program until the block ends. The output of the program is written to a file."""
    with (folder / f"{name}.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(*words, stdout=log, stderr=log, start_new_session=True)
    print(f"{name} {process.pid}", flush=True)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


def write_settings(folder: Path, redis_port: int) -> Path:
    """The settings of both replicas: the same callers, and the same store."""
    path = folder / "gateway.json"
    before: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    callers = before.get("callers") or {"team": {"token": secrets.token_urlsafe(32)}}
    key = before.get("store", {}).get("key") or secrets.token_urlsafe(32)
    store = {"redis": f"redis://127.0.0.1:{redis_port}/0", "key": key}
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
        json.dump({**before, "callers": callers, "store": store}, file, indent=2)
    return path


def write_nginx(folder: Path, ports: list[int]) -> None:
    text = (HERE / "nginx.conf").read_text()
    for name, value in zip(("PORT", "PORT_A", "PORT_B"), ports[:3], strict=True):
        text = text.replace(f"@{name}@", str(value))
    (folder / "nginx.conf").write_text(text.replace("@FOLDER@", str(folder)))


def redis_command(folder: Path, port: int) -> list[str]:
    """The command of a Redis server that stores nothing on the disk. Clients open lost sessions again."""
    return [
        program("redis-server"),
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--dir",
        str(folder),
    ]


def program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    return found or sys.exit(f"{name} is not installed")


def reserved_port(stack: contextlib.ExitStack) -> int:
    """A free port. A bound socket that does not listen keeps it from being chosen for another program."""
    keeper = stack.enter_context(socket.socket())
    keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    keeper.bind(("127.0.0.1", 0))
    return keeper.getsockname()[1]


async def until_ready(url: str) -> None:
    async with asyncio.timeout(START_SECONDS):
        while not await asyncio.to_thread(is_ready, url):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except OSError:
        return False


if __name__ == "__main__":
    main()
