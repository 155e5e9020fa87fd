"""The tools of the test web servers, and a record of the calls that were really run.

The messages come from `InMemoryServer`, which is behind every test web server. The servers do the transport.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from dragoman.testing import InMemoryServer, ToolContext
from dragoman.transports.inprocess import ServerEnd
from dragoman.wire.server.request import ClientRequest
from dragoman.wire.server.service import Handler, RequestError, Service

Json = dict[str, Any]
TEXT = {"type": "string"}
NUMBER = {"type": "number"}


class Ledger:
    """How often each key was executed, whatever became of the reply."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._news = asyncio.Event()

    def enter(self, key: str) -> int:
        self.counts[key] += 1
        self._news.set()
        return self.counts[key]

    async def wait_for(self, key: str, *, seconds: float = 5.0) -> None:
        """Until the key was executed once."""
        async with asyncio.timeout(seconds):
            while not self.counts[key]:
                self._news.clear()
                await self._news.wait()


Honest = Callable[[], Awaitable[Any]]
Story = Callable[[Json, Honest], Awaitable[Any]]
"""From the parameters of a request, and its honest result, to what is answered instead."""


class ToolServer(InMemoryServer):
    def __init__(self, revisions: tuple[str, ...]) -> None:
        super().__init__("web-zoo", revisions=revisions)
        self.stories: dict[str, Story] = {}
        """By method: `initialize`, or another method, which otherwise gets a correct answer."""

    async def serve(self, end: ServerEnd) -> None:
        await super().serve(_Opening(end, self.stories))

    def _service(self) -> Service:
        honest = super()._service()
        honest.handlers = {method: self._teller(handler) for method, handler in honest.handlers.items()}
        return honest

    def _teller(self, honest: Handler) -> Handler:
        async def tell(request: ClientRequest) -> Any:
            story = self.stories.get(request.method)
            if story is None:
                return await honest(request)
            return await story(request.params, lambda: honest(request))

        return tell


class _Opening(ServerEnd):
    """Answers `initialize` with the story about it, if there is one."""

    def __init__(self, end: ServerEnd, stories: dict[str, Story]) -> None:
        self._whole = end
        self._stories = stories

    async def receive(self) -> bytes | None:
        while (data := await self._whole.receive()) is not None:
            message: Json = msgspec.json.decode(data)
            if message.get("method") != "initialize" or "initialize" not in self._stories:
                return data
            reply: Json = {"jsonrpc": "2.0", "id": message["id"]}
            try:
                reply["result"] = await self._stories["initialize"](message["params"], _nothing)
            except RequestError as error:
                reply["error"] = {"code": error.code_in("legacy"), "message": error.message}
            self.send(msgspec.json.encode(reply))
        return None

    def send(self, message: bytes) -> None:
        self._whole.send(message)


async def _nothing() -> Json:
    return {}


def make_tool_server(revisions: tuple[str, ...], ledger: Ledger, changed: Callable[[], None]) -> ToolServer:
    """`changed` is called when the list of tools has become another one."""
    tool_server = ToolServer(revisions)

    async def slow(arguments: Json, _: ToolContext) -> str:
        await asyncio.sleep(arguments.get("seconds", 0.1))
        return "at last"

    async def hold(arguments: Json, _: ToolContext) -> str:
        ledger.enter(f"hold {arguments.get('key', '')}".rstrip())
        await asyncio.Event().wait()
        raise AssertionError

    async def count(arguments: Json, context: ToolContext) -> str:
        total = int(arguments.get("to", 3))
        for number in range(1, total + 1):
            context.progress(number, total, f"{number} of {total}")
            await asyncio.sleep(arguments.get("pause", 0))
        return str(total)

    def change(arguments: Json, _: ToolContext) -> str:
        name = arguments.get("name", "fresh")
        tool_server.add_tool(name, lambda _arguments, _context: f"I am {name}")
        changed()
        return name

    def run(arguments: Json, _: ToolContext) -> str:
        return str(ledger.enter(arguments["key"]))

    routed = {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "shard": {"type": "integer", "x-mcp-header": "Shard"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "unrouted": TEXT,
    }
    tool_server.add_tool("echo", lambda given, _: given.get("text", ""), properties={"text": TEXT})
    tool_server.add_tool(
        "add", lambda given, _: given["a"] + given["b"], properties={"a": NUMBER, "b": NUMBER}
    )
    tool_server.add_tool("hold", hold, description="Never answers.", properties={"key": TEXT})
    tool_server.add_tool("slow", slow, properties={"seconds": NUMBER})
    tool_server.add_tool("ledger", run, properties={"key": TEXT}, required=("key",))
    tool_server.add_tool("count", count, properties={"to": NUMBER, "pause": NUMBER})
    tool_server.add_tool("change", change, properties={"name": TEXT})
    tool_server.add_tool("route", lambda given, _: msgspec.json.encode(given).decode(), properties=routed)
    return tool_server


class Conversation:
    """The connection of one client. `heard` gets every message of the server."""

    def __init__(self, tool_server: InMemoryServer, heard: Callable[[Json], None]) -> None:
        self._heard = heard
        self._end = ServerEnd(self)
        self._task = asyncio.create_task(tool_server.serve(self._end), name="web server")

    def say(self, message: Json) -> None:
        self._end.put(msgspec.json.encode(message))

    async def close(self) -> None:
        self._end.shut()
        self._task.cancel()
        await asyncio.wait([self._task])

    # The far end's view: a sink.

    def received(self, message: bytes) -> None:
        self._heard(_with_changes_announced(msgspec.json.decode(message)))

    def oversized(self, head: bytes, tail: bytes) -> bool:
        return True

    def awaits(self, request_id: str) -> bool:
        return False

    def failed(self, request_id: str | None, trouble: object) -> None:
        return

    def lost(self, cause: str) -> None:
        return


def _with_changes_announced(message: Json) -> Json:
    """The list of tools can change, so the capability is declared."""
    result = message.get("result")
    if isinstance(result, dict) and "capabilities" in result:
        result["capabilities"]["tools"] = {"listChanged": True}
    return message


def notification(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}


LIST_CHANGED = notification("notifications/tools/list_changed")
