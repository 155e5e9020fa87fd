"""The transport of revision 2024-11-05, from the server's side: a stream at `/sse`, POST to `/messages`."""

from __future__ import annotations

import secrets

from aiohttp import web

from dragoman.gateway.access import KnownCaller, Refused
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.http import check_content, read_message
from dragoman.gateway.streams import Outbox, event_stream
from dragoman.wire.server.connection import ClientConnection


class HttpWithSse:
    """Handles `/sse` and `/messages`. The caller of each request is known by then."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._connections: dict[str, tuple[KnownCaller, ClientConnection]] = {}

    async def get(self, request: web.Request, caller: KnownCaller) -> web.StreamResponse:
        key, outbox = secrets.token_urlsafe(24), Outbox()
        async with self._gateway.client(caller, outbox.put) as connection:
            self._connections[key] = (caller, connection)
            try:
                async with event_stream(request) as writer:
                    endpoint = f"event: endpoint\ndata: /messages?session={key}\n\n"
                    await writer.response.write(endpoint.encode())
                    await writer.write_all(outbox)
                return writer.response
            finally:
                del self._connections[key]

    async def post(self, request: web.Request, caller: KnownCaller) -> web.StreamResponse:
        check_content(request)
        owner, connection = self._connections.get(request.query.get("session", ""), (None, None))
        if connection is None or owner != caller:
            raise Refused(404, "there is no such session; open /sse first")
        connection.receive(await read_message(request))
        return web.Response(status=202, text="Accepted")
