"""The minimal server behind HTTP: one POST, one answer, next to no cost: a measurement shows the client.

Start it with `python -S -E minimal_http.py [--cpu N] [--sse 1]`; the first line it prints is its port.
`--sse 1`: replies come as a stream of one event. It finds what it needs of a request with `bytes.find`.
"""

import asyncio
import os
import sys

from minimal import answer, tool_list

JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
EVENTS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"%x\r\nevent: message\ndata: %b\n\r\n0\r\n\r\n"
)
FRAME = len(b"event: message\ndata: \n")
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
TOOLS = tool_list(3)
AS_EVENTS = "--sse" in sys.argv


class Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.waiting = b""

    def data_received(self, data: bytes) -> None:
        self.waiting += data
        while (head := self.waiting.find(b"\r\n\r\n")) >= 0:
            mark = self.waiting[:head].lower().find(b"content-length:")
            length = int(self.waiting[mark + 15 : head].split(b"\r\n", 1)[0]) if mark >= 0 else 0
            if len(self.waiting) < head + 4 + length:
                return
            body = self.waiting[head + 4 : head + 4 + length]
            self.waiting = self.waiting[head + 4 + length :]
            self.transport.write(respond(body))


def respond(body: bytes) -> bytes:
    reply = answer(body, TOOLS) if body else b""
    if not reply:
        return ACCEPTED
    if AS_EVENTS:
        return EVENTS % (len(reply) + FRAME, reply)
    return JSON % (len(reply), reply)


async def main() -> None:
    if "--cpu" in sys.argv:
        os.sched_setaffinity(0, {int(sys.argv[sys.argv.index("--cpu") + 1])})
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
