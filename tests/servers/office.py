"""A server that uses all of `wire/server`: an object for a host, or over stdio (`office.py [revision]`).

count {to}        reports progress and logs
ask {}            asks for a name twice, and returns the answers
hold {}           never answers
hire {name}       adds a tool; the list is reported as changed
touch {uri}       a resource changes; subscribers are notified
ledger {}         the started and the cancelled calls, and the subscriptions, as JSON
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from dragoman.protocol import INVALID_PARAMS, REVISIONS
from dragoman.transports.inprocess import standard_streams
from dragoman.wire.server.connection import ClientConnection, MessageStream
from dragoman.wire.server.request import ClientRequest
from dragoman.wire.server.service import RequestError, ResourceNotFound, Service

Json = dict[str, Any]
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


class Office:
    def __init__(self, revisions: tuple[str, ...] = REVISIONS) -> None:
        self.tools = ["count", "ask", "hold", "hire", "touch", "ledger"]
        self.files = {"file:///a": "one", "file:///b": "two"}
        self.ledger: list[str] = []
        self.subscribed: list[str] = []
        self._connections: set[ClientConnection] = set()
        self.service = Service(
            name="office",
            version="1",
            revisions=revisions,
            list_changes=frozenset({"tools"}),
            handlers={
                "tools/list": self._list,
                "tools/call": self._call,
                "resources/list": self._resources,
                "resources/read": self._read,
                "resources/subscribe": self._subscribe,
                "resources/unsubscribe": self._unsubscribe,
                "logging/setLevel": self._nothing,
            },
        )

    async def serve(self, end: MessageStream) -> None:
        connection = ClientConnection(self.service, end.send)
        self._connections.add(connection)
        try:
            while (message := await end.receive()) is not None:
                connection.receive(message)
        finally:
            self._connections.remove(connection)
            await connection.close()

    async def _list(self, request: ClientRequest) -> Json:
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in self.tools]}

    async def _call(self, request: ClientRequest) -> Json:
        name, arguments = request.params["name"], request.params.get("arguments") or {}
        if name not in self.tools:
            raise RequestError(INVALID_PARAMS, f"unknown tool {name}")
        act = getattr(self, f"_{name}", self._work)
        return {"content": [{"type": "text", "text": json.dumps(await act(request, arguments))}]}

    async def _work(self, request: ClientRequest, arguments: Json) -> Any:
        return "works"

    async def _count(self, request: ClientRequest, arguments: Json) -> Any:
        for number in range(1, arguments["to"] + 1):
            request.progress(number, arguments["to"])
            request.log("info", number)
            await asyncio.sleep(0)
        return arguments["to"]

    async def _ask(self, request: ClientRequest, arguments: Json) -> Any:
        self.ledger.append("ask")
        form = {"mode": "form", "requestedSchema": FORM}
        first = await request.ask("elicitation/create", {**form, "message": "Who asks?"})
        return [first, await request.ask("elicitation/create", {**form, "message": "Who pays?"})]

    async def _hold(self, request: ClientRequest, arguments: Json) -> Any:
        self.ledger.append("hold")
        try:
            await asyncio.Event().wait()
        finally:
            self.ledger.append("cancelled")

    async def _hire(self, request: ClientRequest, arguments: Json) -> Any:
        self.tools.append(arguments["name"])
        for connection in self._connections:
            connection.list_changed("tools")

    async def _touch(self, request: ClientRequest, arguments: Json) -> Any:
        for connection in self._connections:
            connection.resource_updated(arguments["uri"])

    async def _ledger(self, request: ClientRequest, arguments: Json) -> Any:
        return {"calls": self.ledger, "subscribed": self.subscribed}

    async def _resources(self, request: ClientRequest) -> Json:
        return {"resources": [{"uri": uri, "name": uri[-1]} for uri in self.files]}

    async def _read(self, request: ClientRequest) -> Json:
        return {"contents": [{"uri": self._known(request), "text": self.files[self._known(request)]}]}

    async def _subscribe(self, request: ClientRequest) -> Json:
        self.subscribed.append(self._known(request))
        return {}

    async def _unsubscribe(self, request: ClientRequest) -> Json:
        self.subscribed.remove(self._known(request))
        return {}

    async def _nothing(self, request: ClientRequest) -> Json:
        return {}

    def _known(self, request: ClientRequest) -> str:
        uri: str = request.params["uri"]
        if uri not in self.files:
            raise ResourceNotFound(uri)
        return uri


async def _main() -> None:
    await Office(tuple(sys.argv[1:]) or REVISIONS).serve(await standard_streams())


if __name__ == "__main__":
    asyncio.run(_main())
