"""T464: an in-process server that ends in unusual ways, or sends very many messages at once."""

import asyncio
from typing import Any

import msgspec
import pytest

from dragoman import Host
from dragoman.errors import ConnectionLost
from dragoman.testing import InMemoryServer
from dragoman.transports import inprocess
from dragoman.transports.inprocess import InProcessTransport, ServerEnd

pytestmark = pytest.mark.requirement("TRN-5")


class WithoutText(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class EndsDuringACall:
    """Serves as usual until it receives a call, then raises."""

    def __init__(self, error: BaseException) -> None:
        self._error = error
        self._usual = InMemoryServer("x")
        self._usual.add_tool("echo", lambda arguments, context: "hi")

    async def serve(self, end: ServerEnd) -> None:
        receive = end.receive

        async def watched() -> bytes | None:
            message = await receive()
            if message is not None and b'"tools/call"' in message:
                raise self._error
            return message

        end.receive = watched  # type: ignore[method-assign]
        await self._usual.serve(end)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (asyncio.CancelledError(), "it failed with CancelledError"),
        (BaseExceptionGroup("both", [asyncio.CancelledError()]), "it failed with BaseExceptionGroup: both"),
        (WithoutText(), "it failed with WithoutText"),
        (GeneratorExit(), "it failed with GeneratorExit"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_t464_the_running_call_fails_with_the_reason(error: BaseException, cause: str):
    async with Host({"x": EndsDuringACall(error)}, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=20)
        async with asyncio.timeout(20):
            with pytest.raises(ConnectionLost, match=cause):
                await host.call("mcp__x__echo")


async def test_t464_a_handler_that_raises_an_exception_group_gets_an_error_response():
    def fails(arguments: Any, context: Any) -> Any:
        raise BaseExceptionGroup("both", [asyncio.CancelledError()])

    server, reported = InMemoryServer("x"), list[str]()
    server.add_tool("fails", fails)
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["message"]))
    async with Host({"x": server}, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=20)
        async with asyncio.timeout(20):
            outcome = await host.call("mcp__x__fails")
    assert "internal error" in outcome.text
    assert reported == ["the handler of tools/call failed"]


class Sink:
    def __init__(self) -> None:
        self.got: list[bytes | str] = []
        self.over = asyncio.Event()

    def received(self, message: bytes) -> None:
        self.got.append(message)

    def lost(self, cause: str) -> None:
        self.got.append(cause)
        self.over.set()


class Sends:
    def __init__(self, messages: list[Any]) -> None:
        self._messages = messages

    async def serve(self, end: ServerEnd) -> None:
        for message in self._messages:
            end.send(message)


async def delivered(messages: list[Any]) -> list[bytes | str]:
    sink: Any = Sink()
    transport = InProcessTransport("x", Sends(messages))
    await transport.open(sink)
    async with asyncio.timeout(20):
        await sink.over.wait()
    await transport.close()
    return sink.got


async def test_t464_the_last_messages_of_a_server_are_received():
    assert await delivered([b"1", b"2"]) == [b"1", b"2", "it ended"]


@pytest.mark.parametrize("message", ["text", None, memoryview(b"{}")], ids=lambda value: type(value).__name__)
async def test_t464_sending_something_other_than_bytes_fails_the_server(message: Any):
    kind = type(message).__name__
    cause = f"it failed with TypeError: a message must be bytes, not {kind}"
    assert await delivered([b"1", message]) == [b"1", cause]


async def test_t464_other_tasks_run_between_very_many_messages(monkeypatch: pytest.MonkeyPatch):
    ticks = iter(range(1_000_000))
    monkeypatch.setattr(inprocess, "clock", lambda: next(ticks) * inprocess.TURN_SECONDS / 10)
    turns, sink = 0, Sink()
    messages: list[Any] = [msgspec.json.encode(number) for number in range(1000)]
    transport = InProcessTransport("x", Sends(messages))
    await transport.open(sink)  # type: ignore[arg-type]
    async with asyncio.timeout(20):
        while not sink.over.is_set():
            await asyncio.sleep(0)
            turns += 1
    await transport.close()
    assert sink.got == [*messages, "it ended"]
    assert turns >= 100
