"""The WebSocket transport: one connection, one message per frame.

Covers the handshake (subprotocol `mcp`), the order of writes, back-pressure, the heartbeat, and the cause of
the connection's end. Text and binary frames are both messages; the decoder checks for UTF-8. No redirect is
followed, because the headers of the handshake may contain secrets. Compression is not offered, so that a
small frame cannot expand into a large one.
"""

from __future__ import annotations

import asyncio
import base64
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, Literal

import aiohttp
from aiohttp.client_proto import ResponseHandler
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from dragoman.cleaning import one_line
from dragoman.credentials import Credentials, OutgoingRequest
from dragoman.transports.base import About, OneLink, Sink, TransportFailure, connect_error
from dragoman.transports.credentials import Signer, secrets_of, send_signed
from dragoman.transports.pacing import Pacer, clock
from dragoman.transports.watched_connection import WatchedConnection
from dragoman.transports.web import (
    CONNECT_SECONDS,
    FAULTS,
    Network,
    RequestFailed,
    failure_of,
    failure_of_status,
    open_client,
    open_stream,
)

SUBPROTOCOL: Final = "mcp"
HANDSHAKE_SECONDS: Final = 60.0
HEARTBEAT_SECONDS: Final = 30.0
"""The time without a message after which a ping is sent; the peer has half as long to answer."""
STALL_SECONDS: Final = 60.0
WAITING_BYTES: Final = 1024 * 1024
WAITING_MESSAGES: Final = 1024
CLOSE_SECONDS: Final = 1.0


_WebSocket = aiohttp.ClientWebSocketResponse[Literal[False]]


class _Refused(RequestFailed):
    """The server refused the handshake. `headers`: those of its answer."""

    def __init__(self, failure: TransportFailure, headers: CIMultiDictProxy[str]) -> None:
        super().__init__(failure)
        self.headers = headers


_NO_HEADERS: Final = CIMultiDictProxy[str](CIMultiDict())


class _Handshake:
    """The result of a handshake: the link, or the answer with which the server refused it."""

    def __init__(self, link: _WebSocket | None, refused: _Refused | None = None) -> None:
        self._link = link
        self._refused = refused
        self.status = 101 if refused is None else refused.failure.status or 0
        self.headers = _NO_HEADERS if refused is None else refused.headers

    @property
    def link(self) -> _WebSocket:
        if self._refused is not None:
            raise self._refused
        assert self._link is not None
        return self._link

    def close(self) -> None:
        """Called only for a refused handshake, whose connection is already closed."""


class WebSocketTransport(OneLink):
    def __init__(
        self, server: str, network: Network, *, limit_bytes: int, credentials: Credentials | None = None
    ) -> None:
        self._server = server
        self._network = network
        self._limit_bytes = limit_bytes
        self._signer = None if credentials is None else Signer(credentials)
        self._client: aiohttp.ClientSession | None = None
        self._link: _WebSocket | None = None
        self._response: aiohttp.ClientResponse | None = None
        """The response to the handshake: closing it ends the connection immediately."""
        self._sink: Sink | None = None
        """None once the end has been reported or requested: nothing is delivered after that."""
        self._queue: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._queued = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._loops: list[asyncio.Task[None]] = []
        """The reading task and the writing task."""
        self._pacer = Pacer()

    async def open(self, sink: Sink) -> None:
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                self._link = link = await self._connect()
        except BaseException as error:
            await self.close()
            if isinstance(error, FAULTS):
                raise connect_error(self._server, failure_of(error)) from None
            raise
        self._sink = sink
        self._loops.append(asyncio.create_task(self._read(link), name=f"messages from {self._server}"))
        self._loops.append(asyncio.create_task(self._write(link), name=f"messages to {self._server}"))

    def send(self, message: bytes, about: About | None = None) -> None:
        if self._sink is None:
            raise ConnectionError("the connection is closed")
        self._queue.append(message)
        self._waiting_bytes += len(message)
        self._queued.set()
        if self.congested:
            self._room.clear()

    @property
    def congested(self) -> bool:
        return self._waiting_bytes > WAITING_BYTES or len(self._queue) > WAITING_MESSAGES

    async def drained(self) -> None:
        await self._room.wait()

    async def close(self, *, graceful: bool = False) -> None:
        self._stop()
        for task in self._loops:
            task.cancel()
        link, self._link = self._link, None
        client, self._client = self._client, None
        try:
            if self._loops:
                await asyncio.wait(self._loops, timeout=CLOSE_SECONDS)
            if link is not None:
                await self._close_link(link)
        finally:
            if client is not None:
                await client.close()

    async def _connect(self) -> _WebSocket:
        """The link, after at most one renewal of credentials."""
        self._client = client = _client_for(self._server, self._network)
        client.trace_configs.append(_watching_the_handshake(self._answered, self._secrets))
        request = OutgoingRequest("GET", self._network.url)
        done = await send_signed(
            self._signer, self._network.headers, request, partial(self._open_websocket, client)
        )
        return done.link

    def _answered(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        connection = response.connection
        if connection is not None and isinstance(connection.protocol, WatchedConnection):
            connection.protocol.on_tiny_frames = self._tiny_frames_came

    def _tiny_frames_came(self, count: int) -> None:
        if self._sink is not None:
            self._sink.unrequested(count)

    async def _close_link(self, link: _WebSocket) -> None:
        """Sends a close frame and ends the connection, without waiting for the answer.

        aiohttp's own `close` waits for that answer, and reads other input without letting the event loop run.
        """
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await link.send_frame(aiohttp.WSCloseCode.OK.to_bytes(2, "big"), aiohttp.WSMsgType.CLOSE)
        except FAULTS:
            pass  # the close frame is optional
        if self._response is not None:
            self._response.close()
        await link.close()

    def _secrets(self) -> tuple[str, ...]:
        return secrets_of(self._network.headers, self._signer)

    async def _open_websocket(self, client: aiohttp.ClientSession, headers: Mapping[str, str]) -> _Handshake:
        try:
            return _Handshake(await self._link_to(client, headers))
        except _Refused as refused:
            return _Handshake(None, refused)

    async def _link_to(self, client: aiohttp.ClientSession, headers: Mapping[str, str]) -> _WebSocket:
        return await client.ws_connect(
            self._network.address,
            protocols=(SUBPROTOCOL,),
            headers=headers,
            heartbeat=HEARTBEAT_SECONDS,
            # Its own close would wait without limit for a peer that does not read.
            autoclose=False,
            # Answered in `_read`: a flood of pings would otherwise be answered without a pause.
            autoping=False,
            max_msg_size=self._limit_bytes + 1,  # the first size that is refused
            compress=0,
            decode_text=False,
        )

    async def _read(self, link: _WebSocket) -> None:
        while self._sink is not None:
            if self._pacer.is_spent:
                await self._pacer.next_turn()
            message = await link.receive()
            began = clock()
            if message.type is aiohttp.WSMsgType.TEXT or message.type is aiohttp.WSMsgType.BINARY:
                if message.data:
                    self._sink.received(message.data)
                else:
                    self._sink.unrequested(1)
                self._pacer.spend(began)
            elif message.type is aiohttp.WSMsgType.PING or message.type is aiohttp.WSMsgType.PONG:
                self._sink.unrequested(1)
                if message.type is aiohttp.WSMsgType.PING:
                    await self._pong(link, message.data)
                self._pacer.spend(began)
            elif message.type is aiohttp.WSMsgType.CLOSE:
                self._end(describe_close(message.data, message.extra))
            else:
                fault = message.data if isinstance(message.data, BaseException) else link.exception()
                self._end(describe_fault(fault, self._limit_bytes))

    async def _pong(self, link: _WebSocket, payload: bytes) -> None:
        try:
            async with asyncio.timeout(STALL_SECONDS):
                await link.pong(payload)
        except TimeoutError:
            self._end(f"it has not read for {STALL_SECONDS:g} s")
        except (aiohttp.ClientError, OSError):
            return  # the next read says why

    async def _write(self, link: _WebSocket) -> None:
        try:
            while self._sink is not None:
                if not self._queue:
                    self._queued.clear()
                    await self._queued.wait()
                    continue
                message = self._queue.popleft()
                async with asyncio.timeout(STALL_SECONDS):
                    await link.send_frame(message, aiohttp.WSMsgType.TEXT)
                self._written(message)
        except TimeoutError:
            self._end(f"it has not read for {STALL_SECONDS:g} s")
        except (aiohttp.ClientError, OSError):
            return  # the reading task reports the reason

    def _written(self, message: bytes) -> None:
        self._waiting_bytes -= len(message)
        if not self.congested:
            self._room.set()

    def _end(self, cause: str) -> None:
        if sink := self._stop():
            sink.lost(cause)

    def _stop(self) -> Sink | None:
        """Stops delivering. Returns the sink to which an end is reported, if there is one."""
        sink, self._sink = self._sink, None
        self._queue.clear()
        self._waiting_bytes = 0
        self._queued.set()
        self._room.set()
        return sink


def describe_close(code: object, reason: object) -> str:
    text = one_line(str(reason or ""), 200)
    return "it closed the connection" + (f" with code {code}" if code else "") + (f": {text}" if text else "")


def describe_fault(error: BaseException | None, limit_bytes: int) -> str:
    """Describes why a WebSocket ended without a close frame."""
    if isinstance(error, aiohttp.WebSocketError):
        if error.code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG:
            return f"it sent a message larger than the limit of {limit_bytes} bytes"
        return f"it violates the WebSocket protocol: {one_line(str(error), 200)}"
    if isinstance(error, aiohttp.ServerTimeoutError):
        return "it no longer answers pings"
    # aiohttp answers the end of the connection with a close frame, which cannot be sent any more.
    if error is None or isinstance(error, aiohttp.ClientConnectionResetError):
        return "the connection ended without a close frame"
    return failure_of(error).cause


# The handshake. aiohttp's own would follow redirects with all headers; the trace that watches it can stop it.


def _watching_the_handshake(
    answered: Callable[[aiohttp.ClientResponse], None], secrets: Callable[[], Iterable[str]]
) -> aiohttp.TraceConfig:
    watch = aiohttp.TraceConfig()
    watch.on_request_redirect.append(_on_redirect)
    watch.on_request_end.append(partial(_on_answer, answered, secrets))
    watch.freeze()
    return watch


async def _on_redirect(
    session: aiohttp.ClientSession, context: SimpleNamespace, seen: aiohttp.TraceRequestRedirectParams
) -> None:
    raise RequestFailed(await failure_of_status(seen.response))


async def _on_answer(
    answered: Callable[[aiohttp.ClientResponse], None],
    secrets: Callable[[], Iterable[str]],
    session: aiohttp.ClientSession,
    context: SimpleNamespace,
    seen: aiohttp.TraceRequestEndParams,
) -> None:
    if seen.response.status != 101:
        raise _Refused(await failure_of_status(seen.response, hide=secrets()), seen.response.headers)
    chosen = seen.response.headers.get("Sec-WebSocket-Protocol", SUBPROTOCOL)
    if chosen.strip() != SUBPROTOCOL:
        raise RequestFailed(
            TransportFailure(
                "malformed",
                f"it speaks the subprotocol {one_line(chosen, 80)} and not {SUBPROTOCOL}",
                may_have_run=False,
                hint="Is this the URL of an MCP server?",
            )
        )
    answered(seen.response)


# Proxies.


def _client_for(server: str, network: Network) -> aiohttp.ClientSession:
    if network.proxy is None or network.address.scheme in ("wss", "https"):
        return open_client(server, network)
    # aiohttp sends a ws: URL to a proxy as an ordinary request, and few proxies forward an upgrade.
    return aiohttp.ClientSession(
        connector=_TunnelConnector(URL(network.proxy)),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        trust_env=False,
    )


class _TunnelConnector(aiohttp.BaseConnector):
    """Connects through a proxy's CONNECT, without TLS inside."""

    def __init__(self, proxy: URL) -> None:
        super().__init__(force_close=True)
        self._factory = partial(WatchedConnection, loop=self._loop)
        self._proxy = proxy

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: Any, timeout: Any
    ) -> ResponseHandler:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                tunnel = await open_tunnel(self._proxy, req.url)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise _proxy_failure(f"the proxy cannot be reached: {failure_of(error).cause}") from None
        try:
            _, protocol = await self._loop.create_connection(self._factory, sock=tunnel)
        except BaseException:
            tunnel.close()
            raise
        return protocol


async def open_tunnel(proxy: URL, target: URL) -> socket.socket:
    """A socket that leads to the target, through the proxy."""
    if proxy.scheme != "http" or proxy.host is None:
        raise _proxy_failure(f"a {target.scheme}: address cannot be reached through a {proxy.scheme}: proxy")
    reader, writer = await open_stream(proxy.host, proxy.port or 80)
    try:
        writer.write(_connect_request(proxy, target))
        head = await reader.readuntil(b"\r\n\r\n")
        status = head.split(b"\r\n", 1)[0].split(b" ")[1:2]
        if not head.startswith(b"HTTP/1.") or not status or not status[0].startswith(b"2"):
            text = one_line(head.split(b"\r\n", 1)[0].decode("latin-1"), 100)
            raise _proxy_failure(f"the proxy refused: {text}")
        # The streams read nothing after the response head, because the server sends nothing before the
        # handshake.
        return socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno()))
    finally:
        writer.transport.abort()  # closes its own descriptor only


def _connect_request(proxy: URL, target: URL) -> bytes:
    place = f"{target.raw_host}:{target.port}"
    if ":" in (target.raw_host or ""):
        place = f"[{target.raw_host}]:{target.port}"
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
    if proxy.user is not None:
        secret = base64.b64encode(f"{proxy.user}:{proxy.password or ''}".encode()).decode()
        lines.append(f"Proxy-Authorization: Basic {secret}")
    return "\r\n".join([*lines, "", ""]).encode()


def _proxy_failure(cause: str) -> RequestFailed:
    return RequestFailed(
        TransportFailure("unreachable", cause, may_have_run=False, hint="Check HTTP_PROXY or `proxy`.")
    )
