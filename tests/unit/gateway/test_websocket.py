"""The WebSocket transport of the gateway."""

from types import SimpleNamespace
from typing import Any

from dragoman.gateway.streams import Outbox
from dragoman.gateway.websocket import _write  # pyright: ignore[reportPrivateUsage]


async def test_messages_for_a_client_that_is_gone_are_no_error():
    sent: list[str] = []

    async def send_str(text: str) -> None:
        sent.append(text)
        if len(sent) == 2:
            raise ConnectionResetError

    socket: Any = SimpleNamespace(send_str=send_str)
    outbox = Outbox(keeps_read=False)
    for text in (b"1", b"2", b"3"):
        outbox.put(text)
    await _write(socket, outbox)
    assert sent == ["1", "2"]
