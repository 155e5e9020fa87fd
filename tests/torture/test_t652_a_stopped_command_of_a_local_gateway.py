"""T652: a stopped command of a local gateway reads nothing while a server reports endless progress; and one
sends a deeply nested request."""

import asyncio
import json
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.cli.local_gateway.questions import CallingTerminals
from dragoman.cli.local_gateway.server import LINE_LIMIT_BYTES, LocalGateway
from dragoman.config.scopes import Sources
from dragoman.wire.peer import Progress

pytestmark = pytest.mark.requirement("GWY-1")

REPORTS = 10_000
MESSAGE = "x" * 2_000


async def connected(gateway: LocalGateway) -> tuple[socket.socket, asyncio.StreamWriter, asyncio.Task[None]]:
    """The command's end, the gateway's writer, and the task that serves the command."""
    command, served = socket.socketpair()
    command.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=served, limit=LINE_LIMIT_BYTES)
    return command, writer, asyncio.create_task(gateway.handle(reader, writer))


def gateway_with(host: object) -> LocalGateway:
    found: Any = SimpleNamespace(name="count", server="counts")
    gateway: Any = LocalGateway(host, Sources.here(), CallingTerminals(), {})  # pyright: ignore[reportArgumentType]
    gateway._find_tool = lambda asked: (found, dict[str, Any]())  # pyright: ignore[reportUnknownLambdaType]
    return gateway


async def test_t652_progress_that_a_command_does_not_read_is_dropped():
    reported = asyncio.Event()

    async def call(*words: object, on_progress: Any, **options: object) -> None:
        for number in range(REPORTS):
            on_progress(Progress(number, None, MESSAGE))
        reported.set()
        await asyncio.Event().wait()

    command, writer, serving = await connected(gateway_with(SimpleNamespace(call=call)))
    with command:
        command.send(json.dumps({"words": ["count"], "animated": True}).encode() + b"\n{}\n")
        async with asyncio.timeout(60):
            await reported.wait()
            waiting = writer.transport.get_write_buffer_size()
            assert len(MESSAGE) < waiting < REPORTS * len(MESSAGE) / 10
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def test_t652_a_deeply_nested_request_ends_its_connection():
    gateway = gateway_with(SimpleNamespace())
    command, _, serving = await connected(gateway)
    with command:
        request = b'{"more": ' + b"[" * 100_000 + b"\n"
        async with asyncio.timeout(60):
            await asyncio.get_running_loop().sock_sendall(command, request)
            await serving
