"""A Redis server for a test, on a port chosen by the kernel, that can be killed and restarted."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from dragoman.gateway.settings import StoreEntry

KEY = "a-key-of-thirty-two-characters-or-more"


class RedisServer:
    def __init__(self, command: str, folder: Path, port: int, options: tuple[str, ...] = ()) -> None:
        self._words = [
            command,
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            str(folder),
            *options,
        ]
        self.port = port
        self._process: asyncio.subprocess.Process | None = None

    @property
    def entry(self) -> StoreEntry:
        return StoreEntry(redis=f"redis://127.0.0.1:{self.port}/0", key=KEY)

    async def start(self) -> None:
        quiet = asyncio.subprocess.DEVNULL
        self._process = await asyncio.create_subprocess_exec(*self._words, stdout=quiet, stderr=quiet)
        async with asyncio.timeout(10):
            while not await self._answers():
                await asyncio.sleep(0.02)

    async def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            return await self.command("PING") == b"+PONG\r\n"
        return False

    async def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """It answers nothing while the block lasts, and does afterwards what it was told meanwhile."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    async def command(self, *words: str) -> bytes:
        """The beginning of the answer, as it is on the wire."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(" ".join(words).encode() + b"\r\n")
            return await reader.read(65536)
        finally:
            writer.close()
            await writer.wait_closed()

    @contextlib.asynccontextmanager
    async def commands(self) -> AsyncIterator[Counter[str]]:
        """The commands that clients send while the block lasts; complete when it has ended."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        counted: Counter[str] = Counter()
        writer.write(b"MONITOR\r\n")
        assert await reader.readline() == b"+OK\r\n"
        try:
            yield counted
            await self.command("ECHO", "end-of-count")
            while b'"end-of-count"' not in (line := await reader.readline()):
                source, _, words = line.partition(b"] ")
                if not source.endswith(b" lua"):  # what a script does on the server
                    counted[words.split(b'"')[1].decode().upper()] += 1
        finally:
            writer.close()
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def running_redis(
    part: Callable[..., dict[str, Any]], folder: Path, *options: str
) -> AsyncIterator[RedisServer]:
    """`options`: more words of its command line."""
    with socket.socket() as keeper:  # bound and never listening, it keeps the port ours
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", 0))
        command, port = part("redis-server")["command"], keeper.getsockname()[1]
        server = RedisServer(command, folder, port, options)
        await server.start()
        try:
            yield server
        finally:
            await server.kill()
