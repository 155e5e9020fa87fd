"""An in-process server that records received messages and can send messages of its own."""

import json
from typing import Any

from dragoman.testing import InMemoryServer
from dragoman.transports.inprocess import ServerEnd
from tests.integration.workshop import furnish_ours


class WatchedServer(InMemoryServer):
    def __init__(self, **options: Any) -> None:
        super().__init__("watched", **options)
        furnish_ours(self)
        self.methods: list[str] = []
        """The methods of everything received, in order."""
        self._end: ServerEnd | None = None

    async def serve(self, end: ServerEnd) -> None:
        self._end = end
        await super().serve(_Ear(end, self.methods))

    def say(self, method: str, **params: Any) -> None:
        assert self._end is not None
        self._end.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def calls_received(self) -> int:
        return self.methods.count("tools/call")


class _Ear(ServerEnd):
    def __init__(self, end: ServerEnd, methods: list[str]) -> None:
        self._whole = end
        self._methods = methods

    async def receive(self) -> bytes | None:
        data = await self._whole.receive()
        if data is not None:
            self._methods.append(json.loads(data).get("method", "(a reply)"))
        return data

    def send(self, message: bytes) -> None:
        self._whole.send(message)
