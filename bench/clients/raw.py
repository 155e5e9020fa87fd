"""The practical limit: asyncio pipes and msgspec by hand, without timeouts, limits or recovery."""

import asyncio
from typing import Any

import msgspec

from bench.clients import ToolClient

# The capabilities that a Host without handlers declares: each server has the same work for every client.
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
}


class Request(msgspec.Struct):
    id: int
    method: str
    params: dict[str, Any]
    jsonrpc: str = "2.0"


class Reply(msgspec.Struct):
    id: int
    result: msgspec.Raw


class Block(msgspec.Struct):
    type: str
    text: str


class Called(msgspec.Struct):
    content: list[Block]


class Tool(msgspec.Struct):
    name: str
    description: str
    inputSchema: dict[str, Any]


class Listed(msgspec.Struct):
    tools: list[Tool]


encode = msgspec.json.Encoder().encode
decode_reply = msgspec.json.Decoder(Reply).decode
decode_called = msgspec.json.Decoder(Called).decode
decode_listed = msgspec.json.Decoder(Listed).decode


class Pipe(asyncio.SubprocessProtocol):
    """One server: lines in, futures out."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.waiting: dict[int, asyncio.Future[msgspec.Raw]] = {}
        self.last = 0
        self.partial: list[bytes] = []  # pieces of a line whose end has not arrived
        self.exited = self.loop.create_future()

    def connection_made(self, transport: asyncio.SubprocessTransport) -> None:
        self.transport = transport
        self.stdin = transport.get_pipe_transport(0)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if b"\n" not in data:
            self.partial.append(data)
            return
        if self.partial:
            data = b"".join([*self.partial, data])
            self.partial.clear()
        *lines, rest = data.split(b"\n")
        if rest:
            self.partial.append(rest)
        for line in lines:
            reply = decode_reply(line)
            self.waiting.pop(reply.id).set_result(reply.result)

    def process_exited(self) -> None:
        self.exited.set_result(None)

    def request(self, method: str, **params: Any) -> asyncio.Future[msgspec.Raw]:
        self.last += 1
        future = self.waiting[self.last] = self.loop.create_future()
        params["_meta"] = META
        self.stdin.write(encode(Request(self.last, method, params)) + b"\n")
        return future


class Client(ToolClient):
    async def connect(self, commands: list[list[str]]) -> None:
        self.pipes = await asyncio.gather(*map(self._start, commands))
        self.first = self.pipes[0]

    async def _start(self, command: list[str]) -> Pipe:
        _, pipe = await asyncio.get_running_loop().subprocess_exec(Pipe, *command, stderr=None)
        await pipe.request("server/discover")
        return pipe

    async def text(self, tool: str, arguments: dict[str, Any]) -> str:
        result = await self.first.request("tools/call", name=tool, arguments=arguments)
        return decode_called(result).content[0].text

    async def list_tools(self) -> int:
        return len(decode_listed(await self.first.request("tools/list")).tools)

    async def close(self) -> None:
        for pipe in self.pipes:
            pipe.stdin.close()
        await asyncio.gather(*(pipe.exited for pipe in self.pipes))
