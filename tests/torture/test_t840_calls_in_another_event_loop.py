"""T840: a program calls a host from a thread with an event loop of its own, as synchronous code of web
frameworks does. The call is refused before it is sent: the server has carried it out otherwise, and the
caller got an error of asyncio."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import WrongLoop
from dragoman.testing import InMemoryServer

pytestmark = pytest.mark.requirement("LIF-3")


async def in_another_loop(call: Callable[[], Coroutine[Any, Any, object]]) -> object:
    """What the call raises or returns in another thread's event loop, while this one runs."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(asyncio.run(call()))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    await asyncio.to_thread(thread.join)
    return found[0]


async def test_t840_a_call_in_another_loop_is_refused_and_not_delivered():
    calls: list[str] = []
    box = InMemoryServer("box")
    box.add_tool("echo", lambda arguments, context: calls.append("call") or "hi")
    async with Host({"box": box}, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=20)
        requests = {
            "a call": lambda: host.call("mcp__box__echo"),
            "a resource": lambda: host.resources.read("box", "box://note"),
        }
        for request in (*requests.values(), *requests.values()):
            assert isinstance(await in_another_loop(request), WrongLoop)
        assert calls == []
        assert (await host.call("mcp__box__echo")).text == "hi"
        assert calls == ["call"]


async def test_t840_a_thread_can_pass_its_call_to_the_loop_of_the_host():
    box = InMemoryServer("box")
    box.add_tool("echo", lambda arguments, context: "hi")
    async with Host({"box": box}, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=20)
        loop = asyncio.get_running_loop()

        def call() -> str:
            return asyncio.run_coroutine_threadsafe(host.call("mcp__box__echo"), loop).result(20).text

        assert await asyncio.to_thread(call) == "hi"


def test_t840_a_call_in_another_loop_of_the_same_thread_is_refused(home: Path):
    calls: list[str] = []
    box = InMemoryServer("box")
    box.add_tool("echo", lambda arguments, context: calls.append("call") or "hi")
    host = Host({"box": box}, permission_mode="bypassPermissions")
    with asyncio.Runner() as first, asyncio.Runner() as second:
        first.run(host.__aenter__())
        first.run(host.ready(timeout=20))
        with pytest.raises(WrongLoop):
            second.run(host.call("mcp__box__echo"))
        assert first.run(host.call("mcp__box__echo")).text == "hi"
        first.run(host.close())
    assert calls == ["call"]
