"""The transport of revision 2024-11-05, from the server's side: a stream at `/sse`, POST to `/messages`."""

from __future__ import annotations

import secrets

from aiohttp import web

from dragoman.errors import StoreUnavailable
from dragoman.gateway.access import KnownCaller, RequestRefused
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.headers import Headers
from dragoman.gateway.http import Posted, check_content, check_given, read_message
from dragoman.gateway.outbox import Outbox
from dragoman.gateway.replicas import ToSession
from dragoman.gateway.streams import event_stream
from dragoman.wire.codec import Unreadable
from dragoman.wire.server.connection import ClientConnection
from dragoman.wire.server.service import RequestError


class HttpWithSse:
    """Handles `/sse` and `/messages`. The caller of each request is known by then."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._connections: dict[str, tuple[KnownCaller, ClientConnection]] = {}

    async def get(self, request: web.BaseRequest, caller: KnownCaller) -> web.StreamResponse:
        replicas = self._gateway.replicas
        name = "" if replicas is None else f"{replicas.name}."
        key, outbox = name + secrets.token_urlsafe(24), Outbox(keeps_read=False)
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

    async def post(self, request: web.BaseRequest, caller: KnownCaller) -> web.StreamResponse:
        check_content(request)
        message = await read_message(request)
        await self._check_headers(request, caller, message)
        passed = ToSession(request.query.get("session", ""), caller.key, message)
        if not self.take(passed) and not await self._passed_on(passed):
            raise RequestRefused(404, "there is no such session; open /sse first")
        return web.Response(status=202, text="Accepted")

    async def _check_headers(self, request: web.BaseRequest, caller: KnownCaller, message: bytes) -> None:
        headers = Headers.of(request.headers)
        if headers.repeat_nothing:
            return
        try:
            await check_given(self._gateway, "", caller, headers, Posted.of(message).single)
        except (RequestError, Unreadable) as error:
            raise RequestRefused(400, str(error)) from None

    def take(self, passed: ToSession) -> bool:
        """Takes a message of a client whose stream is here; False if there is none."""
        owner, connection = self._connections.get(passed.session, (None, None))
        if connection is None or owner is None or owner.key != passed.caller:
            return False
        connection.receive(passed.message)
        return True

    async def _passed_on(self, passed: ToSession) -> bool:
        """Passes a message to the replica that has the stream; it checks whether it is the caller's."""
        replicas, holder = self._gateway.replicas, passed.session.partition(".")[0]
        if replicas is None or holder in ("", replicas.name):
            return False
        try:
            return bool(await replicas.send(passed, holder))
        except StoreUnavailable as error:
            raise RequestRefused(503, str(error), {"Retry-After": "1"}) from None
