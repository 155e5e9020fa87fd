"""The HTTP server of the gateway: its paths, and the checks before each request.

The order is the security model: the addresses that a request names, then its caller, then the handler. Only
`/healthz`, `/readyz` and the pages for the sign-ins of callers need no token; they reveal nothing about
servers, except that a browser with the link of a sign-in is shown the server's name.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import partial
from time import monotonic
from typing import Any, Final
from urllib.parse import parse_qsl

from aiohttp import HttpVersion11, StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from msgspec import Struct

from dragoman.auth import pages
from dragoman.cleaning import one_line
from dragoman.errors import ConfigError
from dragoman.gateway.access import Addresses, Identify, KnownCaller, RequestRefused
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.http import BODY_LIMIT_BYTES, StreamableHttp, read_message
from dragoman.gateway.sessions import Sessions
from dragoman.gateway.sign_in_pages import NOT_EXPECTED, PAGE, RETURN, TOKEN, PageAnswer, PageRequest
from dragoman.gateway.sse import HttpWithSse
from dragoman.gateway.streams import DISCONNECTED, LISTENS, disconnect
from dragoman.gateway.websocket import WebSockets
from dragoman.interaction import Caller

CLEANING_SECONDS: Final = 60.0
REQUEST_LIMIT: Final = 2000
"""The maximum number of open requests and streams of one caller."""
PAGES_LIMIT: Final = 200
"""The maximum number of open pages for browsers, all together."""
BROWSERS: Final = Caller("browsers that sign in")
FORM_LIMIT_BYTES: Final = 4096
"""The largest form of a page."""
IDLE_SECONDS: Final = 120.0
"""How long a connection may be open without a whole request."""
DRAIN_SECONDS: Final = 10.0
"""How long requests that are being answered may continue when the gateway ends."""
END_SECONDS: Final = 0.5
"""How long requests that exceed this time may take to be cancelled."""
REPORT_SECONDS: Final = 60.0
LINE_LIMIT: Final = 16 * 1024
"""The longest line of a request: browsers return from a sign-in with a long URL."""
_log: Final = logging.getLogger(__name__)
# A request that cannot be read is repeated in its error, with the code that it may contain.
_UNREADABLE: Final = (HttpProcessingError, web.RequestPayloadError)
_log.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], _UNREADABLE)))

RouteHandler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
"""Answers a request."""
Answer = Callable[[web.BaseRequest, KnownCaller], Awaitable[web.StreamResponse]]


class HttpOptions(Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    port: int = 0
    """The port; 0: any free port."""
    identify: Identify
    more_hosts: tuple[str, ...] = ()
    """Public names of the gateway, as they are in the header `Host`."""
    documents: Mapping[str, Mapping[str, object]] = {}
    """By path: JSON documents that everyone may read."""


@contextlib.asynccontextmanager
async def serve_http(gateway: Gateway, options: HttpOptions) -> AsyncGenerator[int]:
    """Serves clients over HTTP for as long as the block lasts; yields the port."""
    server = _HttpServer(gateway, options)
    low_level = web.Server(
        server.handle,
        request_factory=_made_request,
        handler_cancellation=True,
        access_log=None,
        logger=_log,
        max_line_size=LINE_LIMIT,
        keepalive_timeout=IDLE_SECONDS,
    )
    runner = web.ServerRunner(low_level, shutdown_timeout=END_SECONDS)
    await runner.setup()
    try:
        site = web.TCPSite(runner, options.host, options.port, reuse_address=True)
        await _listen(site, options)
        port: int = runner.addresses[0][1]
        if gateway.callers is not None and not gateway.callers.pages.url:
            gateway.callers.pages.url = f"http://127.0.0.1:{port}"
        server.addresses = Addresses.of(options.host, port, options.more_hosts)
        cleaning = asyncio.create_task(server.clean())
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()
        loop.set_exception_handler(_LoopErrors(gateway.report))
        try:
            yield port
        finally:
            loop.set_exception_handler(before)
            cleaning.cancel()
            await site.stop()
            await server.drain()
    finally:
        await runner.cleanup()


async def _listen(site: web.TCPSite, options: HttpOptions) -> None:
    try:
        await site.start()
    except OSError as error:
        cause = os.strerror(error.errno).lower() if error.errno else str(error)
        raise ConfigError(
            f"the gateway cannot listen on {options.host}:{options.port}: {one_line(cause)}",
            hint="Is another gateway running there? Choose another address with --http HOST:PORT.",
        ) from error


class _LoopErrors:
    """Handles the errors of the event loop. A connection that cannot be accepted is reported once a minute:
    asyncio tries again all the time, with a traceback for each attempt."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._reported_until = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if "socket" not in context or not isinstance(error, OSError):
            loop.default_exception_handler(context)
        elif monotonic() >= self._reported_until:
            self._reported_until = monotonic() + REPORT_SECONDS
            self._report(f"no further connections can be accepted: {error.strerror}. Raise `ulimit -n`.")


def _made_request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=BODY_LIMIT_BYTES)


class _HttpServer:
    """The paths of the gateway, its sessions, and the requests that are open."""

    def __init__(self, gateway: Gateway, options: HttpOptions) -> None:
        self._gateway = gateway
        self._options = options
        self.addresses = Addresses()
        self.sessions = Sessions(gateway, monotonic)
        self._open: Counter[Caller] = Counter()
        self._requests: dict[int, tuple[web.BaseRequest, KnownCaller, str]] = {}
        """Requests that are open, by identity: with their callers and views."""
        self._is_idle = asyncio.Event()
        self._is_draining = False
        self._routes = self._make_routes()

    def _make_routes(self) -> dict[str, RouteHandler]:
        """The handler of each path."""
        sse, sockets = HttpWithSse(self._gateway), WebSockets(self._gateway, BODY_LIMIT_BYTES)
        if self._gateway.replicas is not None:
            self._gateway.replicas.on_message.append(sse.take)
        routes: dict[str, RouteHandler] = {
            "/sse": self._checked({"GET": sse.get}),
            "/messages": self._checked({"POST": sse.post}),
            "/ws": self._checked({"GET": sockets.get}),
            "/metrics": self._checked({"GET": self._metrics}),
            "/healthz": _readable(self._healthy),
            "/readyz": _readable(self._ready),
        }
        for view in self._gateway.views:
            streamable = StreamableHttp(self._gateway, self.sessions, view)
            methods: Mapping[str, Answer] = {
                "POST": streamable.post,
                "GET": streamable.get,
                "DELETE": streamable.delete,
            }
            routes[f"/mcp/{view}" if view else "/mcp"] = self._checked(methods, view)
        for path, document in self._options.documents.items():
            routes[path] = _readable(partial(_document, document))
        if self._gateway.callers is not None:
            routes[RETURN] = self._sign_in_page
        return routes

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if "Expect" in request.headers:
            await _continue(request)
        page = self._routes.get(request.path)
        if page is None and self._gateway.callers is not None and _sign_in_of(request):
            page = self._sign_in_page
        if page is None:
            raise web.HTTPNotFound
        return await page(request)

    async def drain(self) -> None:
        """Ends streams, and waits for a while until the requests that are open are answered."""
        self._is_draining = True
        await self._gateway.close()
        self.sessions.end_streams()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while self._open:
                    self._is_idle.clear()
                    await self._is_idle.wait()
        await self.sessions.close()
        if self._gateway.callers is not None:
            await self._gateway.callers.close()

    async def clean(self) -> None:
        while True:
            await asyncio.sleep(CLEANING_SECONDS)
            try:
                await self.sessions.end_idle()
                if self._gateway.callers is not None:
                    self._gateway.callers.close_idle()
                await self._check_streams()
            except Exception as error:  # border: the next round is not affected
                kind = type(error).__name__
                self._gateway.report(f"sessions that are not used were not ended: unexpected error {kind}")

    async def _check_streams(self) -> None:
        """Disconnects the streams of callers whose token is no longer valid, or has other rights. Single
        calls that are being answered may finish."""
        for request, caller, view in list(self._requests.values()):
            if request.method != "GET" and not request.get(LISTENS):
                continue
            try:
                known = await self._options.identify(request.headers.getall("Authorization", []))
                is_same = known.at(view) == caller
            except RequestRefused as refused:
                is_same = refused.status == 503  # tokens cannot be checked now
            if not is_same and id(request) in self._requests:
                disconnect(request, "its token is not valid any more")

    def _checked(self, methods: Mapping[str, Answer], view: str = "") -> RouteHandler:
        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            headers = request.headers
            try:
                self.addresses.check(headers.getall("Host", []), headers.getall("Origin", []))
                known = await self._options.identify(headers.getall("Authorization", []))
                caller = known.at(view)
                answer = methods.get(request.method)
                if answer is None:
                    raise RequestRefused(405, "the method is not allowed", {"Allow": ", ".join(methods)})
                self._begin(caller.caller, REQUEST_LIMIT)
                try:
                    self._requests[id(request)] = (request, caller, view)
                    return await answer(request, caller)
                finally:
                    del self._requests[id(request)]
                    self._end(caller.caller)
                    if DISCONNECTED in request:
                        self._gateway.disconnected(caller.caller, request[DISCONNECTED])
            except ConnectionError:
                return web.Response(status=408)  # it is not sent: the connection has ended
            except RequestRefused as refused:
                self._gateway.metrics.refused[refused.status] += 1
                return web.json_response(
                    {"error": refused.reason}, status=refused.status, headers=refused.headers
                )

        return handle

    def _begin(self, caller: Caller, limit: int) -> None:
        """Registers an open request, until `_end`; raises `RequestRefused` if there are too many."""
        if self._is_draining:
            raise RequestRefused(503, "the gateway is about to end", {"Retry-After": "1"})
        count = self._open.get(caller, 0)
        if count >= limit:
            raise RequestRefused(429, "too many requests are open", {"Retry-After": "1"})
        self._open[caller] = count + 1

    def _end(self, caller: Caller) -> None:
        count = self._open[caller] = self._open[caller] - 1
        if not count:
            del self._open[caller]
            self._is_idle.set()

    async def _sign_in_page(self, request: web.BaseRequest) -> web.Response:
        """A page for a browser, which has no token. It reveals only the names of servers."""
        assert self._gateway.callers is not None
        methods = ["GET", "POST"] if _sign_in_of(request) else ["GET"]
        if request.method not in methods:
            raise web.HTTPMethodNotAllowed(request.method, methods)
        try:
            origins = request.headers.getall("Origin", []) if request.method == "POST" else []
            self.addresses.check(request.headers.getall("Host", []), origins)
            self._begin(BROWSERS, PAGES_LIMIT)
            try:
                asked = await _page_request(request)
                answer = await self._gateway.callers.pages.answer(asked)
            finally:
                self._end(BROWSERS)
        except RequestRefused as refused:
            self._gateway.metrics.refused[refused.status] += 1
            is_later = "Retry-After" in refused.headers
            answer = PageAnswer(refused.status, pages.TOO_MANY, refused.headers) if is_later else NOT_EXPECTED
        return pages.response(answer.body, answer.status, answer.headers)

    async def _metrics(self, request: web.BaseRequest, caller: KnownCaller) -> web.StreamResponse:
        gateway, resources = self._gateway, self._gateway.host.resources
        text = gateway.metrics.text(
            gateway.host.servers,
            {"memory": resources.cache_counts(), "shared": resources.shared_cache_counts()},
            clients=gateway.client_count,
            sessions=len(self.sessions),
            requests_open=self._open.total(),
            caller_hosts_open=0 if gateway.callers is None else len(gateway.callers),
        )
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4"})

    async def _healthy(self, request: web.BaseRequest) -> web.Response:
        return web.Response(text="ok\n")

    async def _ready(self, request: web.BaseRequest) -> web.Response:
        """Answers that the gateway is ready once every server is connected or has failed, until the gateway
        ends."""
        if self._is_draining:
            return web.Response(status=503, text="ending\n")
        if any(view.status == "pending" for view in self._gateway.host.servers.values()):
            return web.Response(status=503, text="connecting\n")
        return web.Response(text="ok\n")


def _readable(answer: RouteHandler) -> RouteHandler:
    """A handler for GET and HEAD only."""

    async def read(request: web.BaseRequest) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            raise web.HTTPMethodNotAllowed(request.method, ["GET", "HEAD"])
        return await answer(request)

    return read


async def _document(document: Mapping[str, object], request: web.BaseRequest) -> web.StreamResponse:
    return web.json_response(document)


async def _continue(request: web.BaseRequest) -> None:
    """Sends `100 Continue`: the client sends the body once it knows that the request is not refused because
    of its headers."""
    if request.version == HttpVersion11:
        if request.headers["Expect"].lower() != "100-continue":
            raise web.HTTPExpectationFailed
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # the response has not begun


def _sign_in_of(request: web.BaseRequest) -> str:
    """The sign-in whose page is requested; empty for other pages."""
    folder, _, sign_in = request.path.rpartition("/")
    return sign_in if folder == PAGE else ""


async def _page_request(request: web.BaseRequest) -> PageRequest:
    sign_in = _sign_in_of(request)
    token: str | None = None
    if request.method == "POST":
        if (request.content_length or FORM_LIMIT_BYTES) >= FORM_LIMIT_BYTES:
            raise RequestRefused(413, "the form is too large")
        form = (await read_message(request)).decode("utf-8", "replace")
        token = dict(parse_qsl(form)).get(TOKEN, "")
    return PageRequest(sign_in, dict(request.cookies), token, "" if sign_in else str(request.rel_url))
