"""Real servers on loopback ports: started, awaited, killed, and started again on the same port.

The port is chosen by the kernel and kept by a socket that is bound and never listens, so that no other
program gets it while the server is down. Leaving a server kills its process group. This module also has the
callers that call during a restart, and the check of their results.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dragoman import DragomanError, Host

START_SECONDS = 30.0
SOME_CALLS = 100
"""How many calls must succeed between two kills, so that each kill hits a server at work."""
FASTMCP_SERVER = Path(__file__).parent / "fastmcp_server.py"
FASTMCP_TASKS = Path(__file__).parent / "fastmcp_tasks_server.py"
Part = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class Recipe:
    """How a part is started as a server on a port, and how it is reached then."""

    part: str
    words: tuple[str, ...]
    """Arguments; `{port}` is put in."""
    environment: Mapping[str, str]
    type: str
    path: str
    echo: tuple[str, Mapping[str, Any], str]
    """A call that always works: tool, arguments, and a word of the result."""


ECHO = ("echo", {"message": "hello"}, "hello")
RECIPES = {
    "everything-http": Recipe(
        "server-everything", ("streamableHttp",), {"PORT": "{port}"}, "http", "/mcp", ECHO
    ),
    "everything-sse": Recipe("server-everything", ("sse",), {"PORT": "{port}"}, "sse", "/sse", ECHO),
    "sdk-http": Recipe(
        "sdk-everything-server",
        ("--port", "{port}", "--log-level", "ERROR"),
        {},
        "http",
        "/mcp",
        ("test_simple_text", {}, "simple text"),
    ),
    "fastmcp-tasks": Recipe("fastmcp", (str(FASTMCP_TASKS), "{port}"), {}, "http", "/mcp", ECHO),
    "fastmcp-expiring": Recipe(
        "fastmcp", (str(FASTMCP_TASKS), "{port}"), {"EXPIRE_SECONDS": "2"}, "http", "/mcp", ECHO
    ),
    "fastmcp-http": Recipe("fastmcp", (str(FASTMCP_SERVER), "{port}"), {}, "http", "/mcp", ECHO),
}


class Remote:
    """`async with Remote(recipe, part) as server`: running and ready."""

    def __init__(self, recipe: Recipe, part: Part) -> None:
        self.recipe = recipe
        self._keeper = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._keeper.bind(("127.0.0.1", 0))
        self.port: int = self._keeper.getsockname()[1]
        self._entry = part(recipe.part, *(word.format(port=self.port) for word in recipe.words))
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the server is left
        self._process: asyncio.subprocess.Process | None = None

    @property
    def entry(self) -> dict[str, Any]:
        """What a host is given to reach it."""
        return {"type": self.recipe.type, "url": f"http://127.0.0.1:{self.port}{self.recipe.path}"}

    async def start(self) -> None:
        given = {name: value.format(port=self.port) for name, value in self.recipe.environment.items()}
        self._process = await asyncio.create_subprocess_exec(
            self._entry["command"],
            *self._entry["args"],
            env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **given},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,
        )
        await self._answers()

    async def kill(self) -> None:
        """SIGKILL, to the whole group."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def _answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not await self._takes_connections():
            assert self._process is not None
            if self._process.returncode is not None or time.monotonic() > deadline:
                self._output.seek(0)
                tail = self._output.read()[-2000:].decode(errors="replace")
                raise AssertionError(f"{self.recipe.part} does not start:\n{tail}")
            await asyncio.sleep(0.02)

    async def _takes_connections(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        return True

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()
        self._keeper.close()
        self._output.close()


@dataclass(frozen=True)
class Ended:
    """How one call ended."""

    began: float
    ended: float
    error: Exception | None

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    @property
    def is_good(self) -> bool:
        return self.error is None


class Load:
    """Callers who call a server all the time, and remember how each call ended."""

    def __init__(
        self, host: Host, server: str, recipe: Recipe, *, callers: int, timeout_seconds: float
    ) -> None:
        self.calls: list[Ended] = []
        self.hanging = 0
        """Callers that did not come back in time once the load was lifted."""
        self._host = host
        self._name = f"mcp__{server}__{recipe.echo[0]}"
        self._recipe = recipe
        self._callers = callers
        self._timeout_seconds = timeout_seconds
        self._news = asyncio.Event()
        self._stopping = False

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._keep_calling()) for _ in range(self._callers)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping = True
        _, hanging = await asyncio.wait(self._tasks, timeout=self._timeout_seconds + 5)
        self.hanging = len(hanging)
        for task in hanging:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def successes_since(self, moment: float, count: int, *, seconds: float) -> list[Ended]:
        """Calls begun after the moment that succeeded, once there are so many, in the order of their ends."""
        async with asyncio.timeout(seconds):
            while (
                len(found := [call for call in self.calls if call.is_good and call.began >= moment]) < count
            ):
                self._news.clear()
                await self._news.wait()
        return found

    async def _keep_calling(self) -> None:
        while not self._stopping:
            began = time.monotonic()
            error = await self._call()
            self.calls.append(Ended(began, time.monotonic(), error))
            self._news.set()
            if error is not None:
                await asyncio.sleep(0.02)

    async def _call(self) -> Exception | None:
        _, arguments, word = self._recipe.echo
        try:
            outcome = await self._host.call(
                self._name, dict(arguments), timeout_seconds=self._timeout_seconds
            )
            outcome.raise_for_error()
            assert word in outcome.text
        except Exception as error:  # border: the test judges what it was
            return error
        return None


async def restart_under_load(
    server: Remote, *, times: int, protocol: str = "auto", callers: int = 8, within: float = 3.0
) -> Load:
    """Kills and restarts it while it is being called, and judges every call."""
    entry = {**server.entry, "protocol": protocol}
    async with Host({"remote": entry}, permission_mode="bypassPermissions") as host:
        view = (await host.ready(timeout=30))["remote"]
        assert (view.status, view.reason) == ("connected", None)
        gone: list[float] = []
        returns: list[float] = []
        async with Load(host, "remote", server.recipe, callers=callers, timeout_seconds=20.0) as load:
            await load.successes_since(0, SOME_CALLS, seconds=10)
            for _ in range(times):
                killed = time.monotonic()
                await server.kill()
                await server.start()
                returned = time.monotonic()
                gone.append(returned - killed)
                first, *_ = await load.successes_since(returned, SOME_CALLS, seconds=20)
                returns.append(first.ended - returned)
        # On a busy machine everything takes longer, the start of the server included.
        within = max(within, 5 * max(gone))
        assert max(returns) <= within, f"usable again after {returns} s"
        assert load.hanging == 0
        assert host.servers["remote"].status == "connected"
        assert host.tools()
    unnamed = [call.error for call in load.calls if not isinstance(call.error, DragomanError | None)]
    assert unnamed == []
    slow = [call for call in load.calls if call.seconds > max(gone) + within]
    assert slow == [], f"{len(slow)} calls took longer than the server was gone"
    return load
