"""The WebSocket transport of the gateway."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.gateway import websocket
from dragoman.gateway.outbox import NOT_READING
from dragoman.gateway.streams import DISCONNECTED, PIECE_BYTES
from dragoman.gateway.websocket import _Client  # pyright: ignore[reportPrivateUsage]


async def test_messages_for_a_disconnected_client_are_no_error():
    sent: list[bytes] = []

    async def send_frame(message: bytes, opcode: object) -> None:
        sent.append(message)
        if len(sent) == 2:
            raise ConnectionResetError

    socket: Any = SimpleNamespace(send_frame=send_frame)
    request: Any = SimpleNamespace(transport=None)
    client = _Client(request, socket)
    for text in (b"1", b"2", b"3"):
        client.outbox.put(text)
    await client.write()
    assert sent == [b"1", b"2"]


class FakeSocket:
    """A connection whose network takes what `taken` says."""

    def __init__(self, *unsent: int) -> None:
        self._unsent = list(unsent)
        self.events: list[str] = []

    def get_write_buffer_size(self) -> int:
        return self._unsent.pop(0) if len(self._unsent) > 1 else self._unsent[0]

    def abort(self) -> None:
        self.events.append("abort")

    async def ping(self) -> None:
        self.events.append("ping")
        raise ConnectionResetError

    async def close(self, **options: Any) -> None:
        self.events.append("close")


class FakeRequest(dict[Any, Any]):
    def __init__(self, transport: FakeSocket) -> None:
        super().__init__()
        self.transport = transport


@pytest.mark.parametrize(
    ("unsent", "events"),
    [
        ((100,), ["close", "abort"]),  # it reads nothing, and less waits than stops the writer
        ((100, 60, 20, 0), ["ping"]),  # it reads slowly
        ((100, 100), ["close", "abort"]),
        ((0,), ["ping"]),
    ],
)
async def test_a_client_that_never_reads_is_disconnected_even_with_few_waiting_messages(
    unsent: tuple[int, ...], events: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(websocket, "PING_SECONDS", 0.0)
    socket: Any = FakeSocket(*unsent)
    request: Any = FakeRequest(socket)
    client = _Client(request, socket)
    async with asyncio.timeout(5):
        await client.ping()
        while not socket.events or socket.events == ["close"]:
            await asyncio.sleep(0)
    assert socket.events == events
    assert request == ({DISCONNECTED: NOT_READING} if "abort" in events else {})


async def test_a_large_message_to_a_client_that_reads_slowly_is_sent_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(websocket, "STALL_SECONDS", 0.02)
    left = 40 * PIECE_BYTES
    written = 0

    async def send_frame(message: bytes, opcode: object) -> None:
        nonlocal written
        written = left
        while written:
            await asyncio.sleep(0.002)
            written -= PIECE_BYTES

    socket: Any = SimpleNamespace(send_frame=send_frame)
    transport = SimpleNamespace(get_write_buffer_size=lambda: written)
    client = _Client(FakeRequest(transport), socket)  # type: ignore[arg-type]  # a part of a transport
    client.outbox.put(bytes(left))
    client.outbox.end()
    await client.write()
    assert (written, client._ending) == (0, None)  # pyright: ignore[reportPrivateUsage]
