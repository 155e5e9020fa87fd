"""The clients of the gateway: their connections, and what servers report that they are notified of."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator, Mapping
from typing import Final

from dragoman.catalog.tools import ServerTool
from dragoman.events import (
    Event,
    PromptsChanged,
    ResourcesChanged,
    ServerConnected,
    ServerLogged,
    ServerStateChanged,
    ToolsChanged,
)
from dragoman.gateway.exposed import exposed
from dragoman.gateway.handlers import ClientHandlers
from dragoman.gateway.questions import ClientQuestions, RunningRequest
from dragoman.host import Host
from dragoman.interaction import Caller
from dragoman.protocol import era_of
from dragoman.version import VERSION
from dragoman.wire.server.connection import ClientConnection
from dragoman.wire.server.request import Send
from dragoman.wire.server.service import Client, ListKind, Service

PAUSE_SECONDS: Final = 0.05
"""Changes of lists within this time are reported together."""
_KINDS: Final[Mapping[type[Event], tuple[ListKind, ...]]] = {
    ToolsChanged: ("tools",),
    ResourcesChanged: ("resources",),
    PromptsChanged: ("prompts",),
    ServerStateChanged: ("tools", "resources", "prompts"),
}
"""The lists that may be others after an event."""


class Gateway:
    """Serves the tools, resources and prompts of one host to many clients."""

    def __init__(self, host: Host, questions: ClientQuestions, *, plain_names: bool = False) -> None:
        """`questions`: the host's interaction and sampler. `plain_names`: see `exposed.py`."""
        self.host = host
        self.questions = questions
        self.plain_names = plain_names
        self._connections: set[ClientConnection] = set()
        self._running: dict[str, list[RunningRequest]] = {}
        """By server, the requests of clients that it is answering."""
        self._names: dict[str, str] = {}
        """By the name that clients use, the qualified name of a tool."""
        self._instructions: str | None = None
        self._is_current = False
        """Whether names and instructions are those of now."""

    def tools(self) -> Mapping[str, ServerTool]:
        """By the name that clients use, every tool of which no rule denies every call."""
        tools = exposed(self.host.tools(), plain=self.plain_names)
        self._names = {name: tool.name for name, tool in tools.items()}
        return tools

    def tool(self, name: str) -> ServerTool | None:
        """The tool that clients call so; None if `tools` does not have it."""
        self._update()
        qualified = self._names.get(name)
        tool = None if qualified is None else self.host.tool(qualified)
        # A name may have come to be another tool's by a change that is not known yet.
        return tool if tool is not None or qualified is None else self.tools().get(name)

    def _update(self) -> None:
        if not self._is_current:
            self._is_current = True
            self.tools()
            texts = [f"## {name}\n{text}" for name, text in self.host.instructions().items()]
            self._instructions = "\n\n".join(texts) or None

    @contextlib.asynccontextmanager
    async def client(
        self, caller: Caller, send: Send, session: Client | None = None
    ) -> AsyncGenerator[ClientConnection]:
        """One client's connection, for as long as the block lasts. `send`: takes its messages."""
        handlers = ClientHandlers(self, caller)
        connection = ClientConnection(self._service(handlers), send, session)
        handlers.updated = connection.resource_updated
        self._connections.add(connection)
        try:
            yield connection
        finally:
            self._connections.discard(connection)
            await connection.close()
            await handlers.close()

    def _service(self, handlers: ClientHandlers) -> Service:
        self._update()
        return Service(
            name="dragoman",
            version=VERSION,
            handlers=handlers.table(),
            instructions=self._instructions,
            list_changes=frozenset({"tools", "resources", "prompts"}),
        )

    @contextlib.contextmanager
    def running(self, server: str, request: RunningRequest) -> Generator[None]:
        """Notes that a server is answering a client's request, for as long as the block lasts."""
        requests = self._running.setdefault(server, [])
        requests.append(request)
        try:
            yield
        finally:
            requests.remove(request)
            if not requests:
                self._running.pop(server, None)

    # What servers report.

    async def run(self) -> None:
        """Passes on what servers report, until the host is closed."""
        changed: set[ListKind] = set()
        timer: asyncio.TimerHandle | None = None
        loop = asyncio.get_running_loop()

        def report() -> None:
            kinds = sorted(changed)
            changed.clear()
            for connection in list(self._connections):
                for kind in kinds:
                    connection.list_changed(kind)

        async for event in self.host.events():
            if isinstance(event, ServerLogged):
                self._logged(event)
            elif isinstance(event, ServerConnected):
                await self._ask_for_messages(event)
            elif kinds := _KINDS.get(type(event)):
                self._is_current = False
                if not changed:
                    timer = loop.call_later(PAUSE_SECONDS, report)
                changed.update(kinds)
        if timer is not None:
            timer.cancel()

    def _logged(self, event: ServerLogged) -> None:
        """A log message goes to the client for which the server works; if these are several, to none: it may
        contain what concerns another one."""
        requests = self._running.get(event.server, ())
        if event.is_message and len(requests) == 1:
            requests[0].request.log(event.level, event.text, event.logger or event.server)

    async def _ask_for_messages(self, event: ServerConnected) -> None:
        """A server of the modern era sends log messages only where they are wanted."""
        if era_of(event.protocol_version) == "modern":
            await self.host.set_log_level(event.server, "info")

    async def close(self) -> None:
        """Ends subscriptions with their results, and calls that wait for answers."""
        for connection in list(self._connections):
            connection.end_subscriptions()
        self.questions.close()
