"""A server in our own process: a linked pair of ends, and whatever object serves behind it."""

import asyncio

import pytest

from dragoman import ConfigError, Host
from dragoman.demo.server import demo_server
from dragoman.errors import ConnectionLost
from dragoman.testing import InMemoryServer
from dragoman.transports.inprocess import InProcessTransport, ServerEnd
from tests.integration.waiting import until
from tests.integration.workshop import fastmcp_server, sdk_server


class Inbox:
    """The host's side of a pair."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.lost_causes: list[str] = []

    def received(self, message: bytes) -> None:
        self.messages.append(message)

    def oversized(self, head: bytes, tail: bytes) -> bool:
        return True

    def lost(self, cause: str) -> None:
        self.lost_causes.append(cause)


class Listening:
    """Reads until the pair is closed; `end` is its end of it."""

    def __init__(self) -> None:
        self.end: ServerEnd | None = None
        self.heard: list[bytes] = []
        self.over = asyncio.Event()

    async def serve(self, end: ServerEnd) -> None:
        self.end = end
        while (message := await end.receive()) is not None:
            self.heard.append(message)
        self.over.set()


@pytest.fixture
async def pair():
    server, inbox = Listening(), Inbox()
    transport = InProcessTransport("shop", server)
    await transport.open(inbox)
    await until(lambda: server.end is not None)
    yield transport, server, inbox
    await transport.close()


async def next_turn() -> None:
    await asyncio.sleep(0)


@pytest.mark.requirement("TRN-5")
async def test_messages_arrive_in_the_next_loop_turn_and_in_order(pair) -> None:
    transport, server, inbox = pair
    for number in (b"1", b"2", b"3"):
        server.end.send(number)
        transport.send(number)
    assert (inbox.messages, server.heard) == ([], []), "`send` runs no code of the receiver"
    await next_turn()
    assert inbox.messages == [b"1", b"2", b"3"]
    await until(lambda: server.heard == [b"1", b"2", b"3"])


@pytest.mark.requirement("TRN-5")
async def test_closing_the_servers_end_closes_the_hosts(pair) -> None:
    transport, server, inbox = pair
    server.end.close()
    assert inbox.lost_causes == []
    await next_turn()
    assert len(inbox.lost_causes) == 1
    await server.over.wait()
    await next_turn()
    with pytest.raises(ConnectionError):
        transport.send(b"too late")


@pytest.mark.requirement("TRN-5")
async def test_closing_the_hosts_end_closes_the_servers_and_no_message_follows(pair) -> None:
    transport, server, inbox = pair
    server.end.send(b"on its way")
    await transport.close()
    assert server.over.is_set()
    server.end.send(b"too late")
    await next_turn()
    assert b"too late" not in inbox.messages
    assert inbox.lost_causes == [], "an end that was asked for is not reported as a loss"


@pytest.mark.requirement("TRN-5")
@pytest.mark.parametrize("make", [demo_server, sdk_server, fastmcp_server])
async def test_built_in_sdk_and_fastmcp_objects_serve(make) -> None:
    async with Host({"shop": make()}, permission_mode="bypassPermissions") as host:
        await host.ready()
        assert (await host.call("mcp__shop__add", {"a": 40, "b": 2})).text == "42"


async def test_one_server_object_can_serve_two_hosts_and_again_after_their_close() -> None:
    server = sdk_server()
    for _ in range(2):
        async with (
            Host({"shop": server}, permission_mode="bypassPermissions") as one,
            Host({"shop": server}, permission_mode="bypassPermissions") as two,
        ):
            for host in (one, two):
                await host.ready()
                assert (await host.call("mcp__shop__add", {"a": 1, "b": 2})).text == "3"


async def test_an_object_that_cannot_serve_is_named() -> None:
    async with Host({"shop": object()}) as host:
        error = (await host.ready())["shop"].error
    assert isinstance(error, ConfigError)
    assert "'shop': cannot serve 'object' objects" in str(error)
    assert error.hint


async def test_a_serve_function_that_raises_fails_its_own_calls_only() -> None:
    class Raises(InMemoryServer):
        async def serve(self, end: ServerEnd) -> None:
            serving = asyncio.create_task(super().serve(end))
            try:
                await asked.wait()
            finally:
                serving.cancel()
            raise RuntimeError("the roof fell in")

    asked = asyncio.Event()
    doomed = Raises("doomed")

    async def ask(arguments, context) -> None:
        asked.set()
        await asyncio.Event().wait()

    doomed.add_tool("ask", ask)
    async with Host({"doomed": doomed, "demo": demo_server()}, permission_mode="bypassPermissions") as host:
        await host.ready()
        with pytest.raises(ConnectionLost, match="the roof fell in"):
            await host.call("mcp__doomed__ask")
        assert host.servers["doomed"].phase == "reconnecting"
        assert (await host.call("mcp__demo__add", {"a": 1, "b": 2})).text == "3"


async def test_a_lifespan_starts_and_ends_with_the_connection() -> None:
    from contextlib import asynccontextmanager

    story: list[str] = []

    @asynccontextmanager
    async def lifespan(server):
        story.append("up")
        yield {}
        story.append("down")

    async with Host({"shop": sdk_server(lifespan=lifespan)}, permission_mode="bypassPermissions") as host:
        await host.ready()
        assert story == ["up"]
    assert story == ["up", "down"]
