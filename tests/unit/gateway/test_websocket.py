"""The WebSocket transport of the gateway."""

from types import SimpleNamespace
from typing import Any

from dragoman.gateway.websocket import _Client  # pyright: ignore[reportPrivateUsage]


async def test_messages_for_a_client_that_is_gone_are_no_error():
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
