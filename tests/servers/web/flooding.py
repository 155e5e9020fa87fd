"""A web server in its own process that floods its client after the tool `flood` is called.

`python -m tests.servers.web.flooding http|sse|ws` prints its URL and serves until its input is closed. It has
its own process because a flood from the test's event loop would block that loop itself. The flood consists of
the argument `text`: raw bytes on the stream or the socket. A socket is sent the argument `first` before; over
http, `text` is then written outside the chunks of the response.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from aiohttp import web

from tests.servers.web import Ask, http_sse, streamable, websocket
from tests.servers.web.answers import EVENTS

PIECE_BYTES = 64 * 1024
SITES = {"http": streamable, "sse": http_sse, "ws": websocket}


async def pour(write: Any, text: bytes) -> None:
    piece = text * (PIECE_BYTES // len(text))
    while True:
        await write(piece)


async def flood_over_http(ask: Ask) -> web.StreamResponse | None:
    """The response to the call is a stream without end."""
    if ask.params.get("name") != "flood":
        return None
    response = web.StreamResponse(headers=EVENTS)
    await response.prepare(ask.http)
    arguments = ask.params["arguments"]
    is_raw = "first" in arguments
    if is_raw:
        await response.write(arguments["first"].encode("latin-1"))
    write = raw_writer(ask.http.transport) if is_raw else response.write
    await pour(write, arguments["text"].encode("latin-1"))
    return response


class Flooded:
    """Writes to whatever transport a client's stream or socket stands on."""

    def __init__(self) -> None:
        self.transports: list[Any] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def __call__(self, ask: Ask) -> None:
        self.transports.append(ask.http.transport)

    def flood(self, arguments: dict[str, Any], _: Any) -> Any:
        text = arguments["text"].encode("latin-1")
        for each in self.transports:
            each.write(arguments.get("first", "").encode("latin-1"))
        self._tasks += [asyncio.create_task(pour(raw_writer(each), text)) for each in self.transports]
        return asyncio.Event().wait()


def raw_writer(transport: Any) -> Any:
    async def write(piece: bytes) -> None:
        transport.write(piece)
        while transport.get_write_buffer_size() > PIECE_BYTES and not transport.is_closing():
            await asyncio.sleep(0.001)

    return write


async def main(kind: str) -> None:
    flooded = Flooded()
    on = {"tools/call": flood_over_http} if kind == "http" else {"GET": flooded}
    async with SITES[kind](on=on) as server:
        server.in_memory.add_tool(
            "flood", flooded.flood, properties={"text": {"type": "string"}, "first": {"type": "string"}}
        )
        print(server.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
