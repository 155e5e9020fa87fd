"""T158: endless parts of a message, or endless interim replies before the answer, are detected."""

import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.events import ServerLogged
from tests.servers.web import Ask, websocket
from tests.torture.bystander_host import until
from tests.torture.child_programs import program_environment
from tests.torture.test_t109_floods import flooding, is_cut_off

__all__ = ["flooding"]

pytestmark = pytest.mark.requirement("TRN-9")

FRAMES = {
    "empty": "\x00\x00",
    "empty and masked": "\x00\x80abcd",
    "of one blank": "\x00\x01 ",
}


@pytest.mark.parametrize("what", FRAMES)
async def test_t158_endless_tiny_parts_of_a_message_are_a_flood(bystander_host, flooding, what):
    async with bystander_host({"type": "ws", "url": flooding("ws")}) as a:
        await is_cut_off(a, FRAMES[what], first="\x01\x00")


def in_parts(message: bytes, part_bytes: int) -> bytes:
    """The frames of one message."""
    parts = [message[at : at + part_bytes] for at in range(0, len(message), part_bytes)]
    frames = [b"\x00" + size_of(part) + part for part in parts]
    return b"\x01\x00" + b"".join(frames) + b"\x80\x00"


def size_of(part: bytes) -> bytes:
    if len(part) < 126:
        return bytes([len(part)])
    return (
        b"\x7e" + struct.pack("!H", len(part))
        if len(part) < 2**16
        else b"\x7f" + struct.pack("!Q", len(part))
    )


@pytest.mark.parametrize("part_bytes", [100, 1000, 70_000])
async def test_t158_a_large_message_in_parts_is_not_a_flood(bystander_host, part_bytes):
    links: list[Any] = []

    async def opened(ask: Ask) -> None:
        links.append(ask.http.transport)

    settings = {"DRAGOMAN_UNREQUESTED_MESSAGES_PER_SECOND": 100}
    message = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"%b"}}' % (
        b"x" * 4_000_000
    )
    async with (
        websocket(on={"GET": opened}) as server,
        bystander_host({"type": "ws", "url": server.url}, settings=settings) as a,
    ):
        for link in links:
            link.write(in_parts(message, part_bytes))
        await until(lambda: a.happened(ServerLogged))
        assert await a.call("echo", text="fine") == "fine"
        assert a.view.status == "connected"


INTERIM = b"HTTP/1.1 103 Early Hints\\r\\n\\r\\n"
SERVER = f"""
import socket
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
while True:
    link, _ = listening.accept()
    link.recv(65536)
    try:
        while True:
            link.sendall(b"{INTERIM.decode()}" * 1000)
    except OSError:
        link.close()
"""


@pytest.fixture
def hinting() -> Iterator[str]:
    """The URL of a server that sends endless interim replies."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True, env=program_environment()
    )
    assert process.stdout is not None
    yield f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"
    process.kill()
    process.communicate()


@pytest.mark.parametrize("kind", ["http", "sse", "ws"])
async def test_t158_endless_interim_replies_are_not_an_answer(bystander_host, hinting, kind):
    url = hinting.replace("http", "ws") if kind == "ws" else hinting
    async with bystander_host({"type": kind, "url": url}, wait=False) as a:
        await until(lambda: a.view.status == "failed", 20)
        assert "more than 100 interim replies came instead of an answer" in (a.view.reason or "")
