"""An embedding program with its own servers, which it reaches with control messages, as `sdk` servers
need it.
"""

import asyncio
import json

from dragoman.testing import InMemoryServer
from dragoman.transports.control import ServerLink
from dragoman.transports.inprocess import ServerEnd


class Embedding:
    """A `ControlChannel` around servers in this process."""

    def __init__(self, **servers: InMemoryServer) -> None:
        self._servers = servers
        self._talks: dict[str, _Talk] = {}

    def attach(self, server: str, link: ServerLink) -> None:
        self._talks[server] = _Talk(self._servers[server], link)

    def detach(self, server: str, link: ServerLink) -> None:
        self._talks.pop(server).close()

    async def mcp_message(self, server: str, message: bytes) -> bytes | None:
        return await self._talks[server].say(message)


class _Talk:
    def __init__(self, server: InMemoryServer, link: ServerLink) -> None:
        self._link = link
        self._end = ServerEnd(self)
        self._waiting: dict[str, asyncio.Future[bytes]] = {}
        self._task = asyncio.create_task(server.serve(self._end))

    async def say(self, message: bytes) -> bytes | None:
        request_id = json.loads(message).get("id")
        if request_id is None:
            self._end.put(message)
            return None
        reply = self._waiting[request_id] = asyncio.get_running_loop().create_future()
        self._end.put(message)
        return await reply

    def close(self) -> None:
        self._end.shut()
        self._task.cancel()

    # What the server says.

    def received(self, message: bytes) -> None:
        waiting = self._waiting.pop(json.loads(message).get("id"), None)
        if waiting is None:
            self._link.push(message)
        elif not waiting.done():
            waiting.set_result(message)

    def lost(self, cause: str) -> None:
        self._link.disconnect(cause)
