"""A correct Streamable HTTP server for every revision from 2025-03-26 to 2026-07-28, with optional faults.

This module has the HTTP part of both eras; the messages come from `InMemoryServer` (see tools.py). Faulty
answers are added by method with `on`, or with the options below; both can be changed while it runs. Protocol
errors of a client are recorded in `faults`.

    async with streamable(revisions=("2025-11-25",), on={"tools/call": answers.html()}) as server:
        host = Host({"x": {"type": "http", "url": server.url}})
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from aiohttp import web

from dragoman.protocol import (
    LEGACY_REVISIONS,
    META_CLIENT_CAPABILITIES,
    META_PROTOCOL_VERSION,
    MODERN_REVISIONS,
    REVISIONS,
)
from tests.servers.web import answers
from tests.servers.web.checks import complaint_about
from tests.servers.web.site import Answer, Ask, Site
from tests.servers.web.streams import Manner, Stream, Viewing
from tests.servers.web.tools import LIST_CHANGED, Conversation, Ledger, make_tool_server, notification

Json = dict[str, Any]
META_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
BAD_REQUEST = -32000


class Session:
    """One legacy client: its conversation, and the streams on which it is answered."""

    def __init__(self, server: Streamable, identity: str) -> None:
        self.identity = identity
        self.revision = ""
        self.requests = 0
        self.get_stream = Stream(f"{identity}-get")
        self.streams = {self.get_stream.name: self.get_stream}
        self._by_request: dict[Any, Stream] = {}
        self._by_progress: dict[Any, Stream] = {}
        self.conversation = Conversation(server.in_memory, self._heard)

    def ask(self, ask: Ask, *, progress_apart: bool) -> Stream:
        """The stream on which this request will be answered; its progress may go to the GET stream."""
        self.requests += 1
        stream = Stream(f"{self.identity}-{self.requests}")
        self.streams[stream.name] = self._by_request[ask.id] = stream
        if "progressToken" in ask.meta and not progress_apart:
            self._by_progress[ask.meta["progressToken"]] = stream
        self.conversation.say(ask.message)
        return stream

    def tell(self, message: Json) -> None:
        self.conversation.say(message)
        if message.get("method") == "notifications/cancelled":
            stream = self._by_request.pop(message["params"].get("requestId"), None)
            if stream is not None:
                stream.finish()

    def _heard(self, message: Json) -> None:
        if "method" not in message:
            if message.get("result", {}).get("protocolVersion"):
                self.revision = message["result"]["protocolVersion"]
            stream = self._by_request.pop(message["id"], None)
            if stream is not None:
                stream.put(message)
                stream.finish()
        else:
            token = message.get("params", {}).get("progressToken")
            self._by_progress.get(token, self.get_stream).put(message)


class Streamable(Site):
    def __init__(
        self,
        *,
        revisions: tuple[str, ...] = REVISIONS,
        replies: Literal["json", "sse"] = "sse",
        sessions: bool = True,
        get_stream: bool = True,
        resumable: bool = False,
        priming: bool = False,
        retry_ms: int | None = None,
        end_streams_after: int | None = None,
        lost_after: int | None = None,
        lost_as: answers.Lost = "404 -32001",
        on: Mapping[str, Answer] | None = None,
        ledger: Ledger | None = None,
        path: str = "/mcp",
    ) -> None:
        """`lost_after`: how many requests a session lasts once opened; `lost_as`: how its loss is said."""
        super().__init__(path=path)
        self.ledger = ledger or Ledger()
        """Hand one ledger to two servers, and the second is the first one restarted."""
        self.in_memory = make_tool_server(revisions, self.ledger, lambda: self.push(LIST_CHANGED))
        self.revisions = revisions
        self.replies = replies
        self.sessions: dict[str, Session] = {}
        self.lost_after = lost_after
        self.lost_as: answers.Lost = lost_as
        self.on: dict[str, Answer] = dict(on or {})
        """Answers in front of the server: by the protocol's method, or "GET", "DELETE", or "*"."""
        self.manner = Manner(resumable, priming, retry_ms, end_streams_after)
        self.faults: list[str] = []
        """What clients did that the protocol forbids."""
        self.answers_heard: list[Json] = []
        """Answers of clients to what was asked of them."""
        self.given_up: list[Any] = []
        """Ids of modern requests whose response the client closed before it was complete."""
        self._with_sessions = sessions
        self._with_get_stream = get_stream
        self._numbers = itertools.count(1)
        self._viewings: set[Viewing] = set()
        self._listeners: dict[Stream, Ask] = {}

    # What a test may do while clients are connected.

    def push(self, message: Json) -> None:
        """Says something unasked: on the GET stream of each session, and to each who listens for it."""
        for session in self.sessions.values():
            session.get_stream.put(message)
        for stream, ask in self._listeners.items():
            if _wants(ask, message):
                params = {**message.get("params", {}), "_meta": {META_SUBSCRIPTION: ask.id}}
                stream.put({**message, "params": params})

    def end_streams(self) -> None:
        """Every open stream of events ends in order; what it has to say can still be fetched."""
        for viewing in self._viewings:
            viewing.stop()

    async def lose_sessions(self) -> None:
        lost, self.sessions = list(self.sessions.values()), {}
        for session in lost:
            await session.conversation.close()

    async def closing(self) -> None:
        await self.lose_sessions()

    # Answering.

    async def answer(self, ask: Ask) -> web.StreamResponse:
        for what in (ask.rpc, ask.method, "*"):
            if what in self.on and (response := await self.on[what](ask)) is not None:
                return response
        if ask.method == "POST":
            return await self._post(ask)
        if not self._speaks_legacy():
            return web.Response(status=405)
        if ask.method == "GET":
            return await self._get(ask)
        return await self._delete(ask) if ask.method == "DELETE" else web.Response(status=405)

    async def _post(self, ask: Ask) -> web.StreamResponse:
        accepted = ask.headers.get("Accept", "")
        if "application/json" not in accepted or "text/event-stream" not in accepted:
            return self._refuse(ask, 406, BAD_REQUEST, f"Accept is {accepted!r}")
        if ask.http.content_type != "application/json":
            return self._refuse(ask, 415, BAD_REQUEST, f"Content-Type is {ask.http.content_type!r}")
        if not isinstance(ask.message, dict):
            return self._refuse(ask, 400, -32700, "the body is not one message")
        if self._is_modern(ask):
            return await self._post_modern(ask)
        return await self._post_legacy(ask)

    def _is_modern(self, ask: Ask) -> bool:
        if ask.rpc == "initialize":
            return not self._speaks_legacy()
        named = META_PROTOCOL_VERSION in ask.meta or ask.headers.get("MCP-Protocol-Version", "") > "2026"
        return named and any(revision in self.revisions for revision in MODERN_REVISIONS)

    def _speaks_legacy(self) -> bool:
        return any(revision in self.revisions for revision in LEGACY_REVISIONS)

    def _refuse(self, ask: Ask, status: int, code: int, message: str, *, fault: bool = True) -> web.Response:
        if fault:
            self.faults.append(f"{ask.method} {ask.rpc or ''}: {message}")
        body = answers.error_to(ask, code, message)
        return web.Response(status=status, body=body, content_type="application/json")

    # The legacy era.

    async def _post_legacy(self, ask: Ask) -> web.StreamResponse:
        if ask.rpc == "initialize":
            if "Mcp-Session-Id" in ask.headers:
                return self._refuse(ask, 400, BAD_REQUEST, "initialize names a session")
            identity = f"session-{next(self._numbers)}" if self._with_sessions else ""
            session = self.sessions[identity] = Session(self, identity)
            return await self._reply(ask, session)
        session = await self._session_of(ask)
        if isinstance(session, web.StreamResponse):
            return session
        if "method" not in ask.message:
            self.answers_heard.append(ask.message)
            return web.Response(status=202)
        if "id" not in ask.message:
            session.tell(ask.message)
            return web.Response(status=202)
        return await self._reply(ask, session)

    async def _session_of(self, ask: Ask) -> Session | web.StreamResponse:
        identity = ask.headers.get("Mcp-Session-Id")
        if self._with_sessions and identity is None:
            probe = META_PROTOCOL_VERSION in ask.meta
            return self._refuse(ask, 400, BAD_REQUEST, "Mcp-Session-Id header is required", fault=not probe)
        session = self.sessions.get(identity or "")
        if session is None and not self._with_sessions:
            session = self.sessions[""] = Session(self, "")
        if session is not None and self.lost_after is not None and session.requests > self.lost_after:
            await self.sessions.pop(session.identity).conversation.close()
            session = None
        if session is None:
            return await answers.session_lost(self.lost_as)(ask) or web.Response(status=404)
        version = ask.headers.get("MCP-Protocol-Version")
        if session.revision >= "2025-06-18" and version != session.revision:
            return self._refuse(ask, 400, BAD_REQUEST, f"MCP-Protocol-Version is {version!r}")
        return session

    async def _reply(self, ask: Ask, session: Session) -> web.StreamResponse:
        headers = {"Mcp-Session-Id": session.identity} if session.identity else {}
        stream = session.ask(ask, progress_apart=self.replies == "json")
        if self.replies == "sse":
            manner = replace(self.manner, end_after=None) if ask.rpc == "initialize" else self.manner
            return await self._show(ask, Viewing(stream, manner), headers)
        await stream.finished()
        return web.json_response(stream.messages[-1] if stream.messages else None, headers=headers)

    async def _get(self, ask: Ask) -> web.StreamResponse:
        if "text/event-stream" not in ask.headers.get("Accept", ""):
            return self._refuse(ask, 406, BAD_REQUEST, "GET does not accept text/event-stream")
        if not self._with_get_stream and "Last-Event-ID" not in ask.headers:
            return web.Response(status=405)
        session = await self._session_of(ask)
        if isinstance(session, web.StreamResponse):
            return session
        name, _, number = ask.headers.get("Last-Event-ID", "").rpartition(".")
        if not name:
            viewing = Viewing(
                session.get_stream,
                replace(self.manner, end_after=None),
                start=len(session.get_stream.messages),
            )
        elif name in session.streams and number.isdigit():
            manner = Manner(with_ids=True)
            viewing = Viewing(session.streams[name], manner, start=int(number))
        else:
            return self._refuse(ask, 400, BAD_REQUEST, "no such event")
        return await self._show(ask, viewing, {})

    async def _delete(self, ask: Ask) -> web.StreamResponse:
        session = await self._session_of(ask)
        if isinstance(session, web.StreamResponse):
            return session
        self.sessions.pop(session.identity, None)
        session.get_stream.finish()
        await session.conversation.close()
        return web.Response(status=200)

    async def _show(self, ask: Ask, viewing: Viewing, headers: Mapping[str, str]) -> web.StreamResponse:
        self._viewings.add(viewing)
        try:
            return await viewing.show(ask, headers)
        finally:
            self._viewings.discard(viewing)

    # The modern era.

    async def _post_modern(self, ask: Ask) -> web.StreamResponse:
        for header in ("Mcp-Session-Id", "Last-Event-ID"):
            if header in ask.headers:
                self.faults.append(f"POST {ask.rpc}: {header} is sent to a modern server")
        if "id" not in ask.message:
            self.faults.append(f"POST {ask.rpc}: a modern client sends nothing but requests")
            return web.Response(status=202)
        if ask.rpc != "initialize":
            complaint = complaint_about(ask, self.revisions, await self._schema_of(ask))
            if complaint is not None:
                error = {"jsonrpc": "2.0", "id": ask.id, "error": complaint}
                return web.json_response(error, status=400)
        if ask.rpc == "subscriptions/listen":
            return await self._listen(ask)
        return await self._converse(ask)

    async def _converse(self, ask: Ask) -> web.StreamResponse:
        stream = Stream("")
        conversation = Conversation(self.in_memory, lambda message: _take(stream, message))
        conversation.say(ask.message)
        try:
            if self.replies == "sse" or "progressToken" in ask.meta:
                return await self._show(ask, Viewing(stream, Manner()), {})
            await stream.finished()
            reply = stream.messages[-1]
            return web.json_response(reply, status=_status_of(reply))
        finally:
            if not stream.done:
                self.given_up.append(ask.id)
            await conversation.close()

    async def _listen(self, ask: Ask) -> web.StreamResponse:
        stream = Stream("")
        wanted = ask.params.get("notifications") or {}
        offered = {kind: value for kind, value in wanted.items() if value}
        meta = {META_SUBSCRIPTION: ask.id}
        stream.put(
            notification("notifications/subscriptions/acknowledged", notifications=offered, _meta=meta)
        )
        self._listeners[stream] = ask
        try:
            return await self._show(ask, Viewing(stream, Manner()), {})
        finally:
            del self._listeners[stream]

    async def _schema_of(self, ask: Ask) -> Mapping[str, Any] | None:
        """The schema of the called tool, requested from `InMemoryServer`."""
        if ask.rpc != "tools/call":
            return None
        stream = Stream("")
        conversation = Conversation(self.in_memory, lambda message: _take(stream, message))
        try:
            meta = {META_PROTOCOL_VERSION: MODERN_REVISIONS[0], META_CLIENT_CAPABILITIES: {}}
            conversation.say({"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": {"_meta": meta}})
            await stream.finished()
        finally:
            await conversation.close()
        tools = stream.messages[-1]["result"]["tools"]
        return next((tool["inputSchema"] for tool in tools if tool["name"] == ask.params.get("name")), None)


def _take(stream: Stream, message: Json) -> None:
    stream.put(message)
    if "method" not in message:
        stream.finish()


def _status_of(reply: Json) -> int:
    return {-32601: 404, -32020: 400, -32021: 400, -32022: 400}.get(reply.get("error", {}).get("code"), 200)


def _wants(ask: Ask, message: Json) -> bool:
    wanted = ask.params.get("notifications") or {}
    _, kind, *what = f"{message.get('method', '')}//".split("/")[:3]
    if what == ["list_changed"]:
        return bool(wanted.get(f"{kind}ListChanged"))
    if what == ["updated"]:
        uri = message["params"]["uri"]
        return any(f"{uri}/".startswith(f"{each}/") for each in wanted.get("resourceSubscriptions", ()))
    return True


streamable = Streamable
"""`async with streamable(…) as server`."""
