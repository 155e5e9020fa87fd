"""Streamable HTTP: each message is a POST request, and replies come as JSON or as an event stream.

Also covers the session id, the event stream of a legacy server (GET), resuming an interrupted stream
(`Last-Event-ID`), and the DELETE request that ends a session. Messages are not interpreted: the headers that
repeat parts of them are passed in. A failure of one request is reported for that request only. A redirect is
not followed when credentials are sent. A response is read up to the limit, which counts decompressed bytes.
Authentication and the answer to a 401 or 403 are in `credentials.py`; OAuth is in the package `auth`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Coroutine, Mapping
from functools import partial
from typing import Any, Final

import aiohttp
from yarl import URL

from dragoman.credentials import Credentials, OutgoingRequest
from dragoman.deadlines import Deadlines
from dragoman.protocol import LEGACY_REVISIONS, REVISION_IN_HEADER, era_of
from dragoman.transports.base import ADDRESS_HINT, ADDRESS_QUESTION, About, Details, Sink, TransportFailure
from dragoman.transports.credentials import NoCredentials, Signer, secrets_of, send_signed
from dragoman.transports.pacing import Pacer, clock
from dragoman.transports.sse_events import EventTooLarge, SseParser, in_pieces
from dragoman.transports.watched_connection import watch_chunks
from dragoman.transports.web import (
    EVENTS,
    FAULTS,
    JSON,
    Network,
    TooLarge,
    answer_seconds,
    body_of,
    content_type_of,
    failure_of,
    failure_of_status,
    open_client,
    read_body,
    with_session,
)

UNDER_WAY_LIMIT: Final = 256
"""The maximum number of concurrent requests; more wait."""
RESUME_LIMIT: Final = 3
"""The number of consecutive failures to resume a broken stream after which its request counts as lost."""
RETRY_SECONDS: Final = 1.0
RETRY_LIMIT_SECONDS: Final = 30.0
SHORTEST_RETRY_SECONDS: Final = 0.1
"""The minimum pause before a stream is resumed, even if the server requests less: a server that ends each
stream immediately would otherwise be contacted without a pause."""
LASTING_SECONDS: Final = 10.0
"""A stream that was open for this long does not count as a failure."""
CLOSE_SECONDS: Final = 1.0
STREAM_END_SECONDS: Final = 0.25
"""How long a stream may stay open after its reply."""
REDIRECT_LIMIT: Final = 3
DOUBLINGS_LIMIT: Final = 10

INITIALIZED_SECONDS: Final = 5.0
INITIALIZED: Final = "notifications/initialized"


class HttpTransport:
    wants_about = True
    sends_message_headers = True

    def __init__(
        self,
        server: str,
        network: Network,
        *,
        limit_bytes: int,
        request_seconds: float,
        credentials: Credentials | None = None,
        client_session_id: str | None = None,
    ) -> None:
        self._server = server
        self._network = network
        # Separate from the entry's headers: those may be credentials, to which other limits apply.
        self._base_headers = with_session(network.headers, client_session_id)
        self._limit_bytes = limit_bytes
        self._request_seconds = request_seconds
        self._signer = None if credentials is None else Signer(credentials)
        self._url = network.address
        self._client: aiohttp.ClientSession | None = None
        self._sink: Sink | None = None
        """None after the end was requested: nothing is delivered after that."""
        self._revision: str | None = None
        self._session_id: str | None = None
        self._headers: dict[str, str] = {}
        """The headers of every message; composed again when session or revision change."""
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count()
        self._posts: dict[int | str, asyncio.Task[None]] = {}
        """The messages that are being sent, by the id of the request or a unique text."""
        self._deadlines = Deadlines["int | str"](self._loop, self._give_up)
        self._expired: set[int | str] = set()
        self._initialized: asyncio.Task[None] | None = None
        """The POST of `notifications/initialized`, until it is answered."""
        self._others: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._room.set()
        self._pacer = Pacer()

    async def open(self, sink: Sink) -> None:
        # No message is sent yet: the first request finds out whether the server can be reached.
        self._client = open_client(self._server, self._network)
        self._sink = sink
        self._compose_headers()
        if self._signer is not None:
            await self._signer.prepare()

    @property
    def congested(self) -> bool:
        return len(self._posts) >= UNDER_WAY_LIMIT

    async def drained(self) -> None:
        await self._room.wait()

    def send(self, message: bytes, about: About | None = None) -> None:
        if self._sink is None:
            raise ConnectionError("the connection is closed")
        about = about or About()
        key = about.request_id or f"notification {next(self._numbers)}"
        task = self._posts[key] = self._loop.create_task(self._post(message, about, key))
        if about.method == INITIALIZED:
            self._initialized = task
        if (seconds := answer_seconds(about, self._request_seconds)) is not None:
            self._deadlines.set(key, seconds)
        if self.congested:
            self._room.clear()

    def abandon(self, request_id: int) -> bool:
        if task := self._posts.get(request_id):
            task.cancel()
        # In the modern era closing the stream cancels the request; in the legacy era it has no meaning.
        return self._revision is not None and era_of(self._revision) == "modern"

    def negotiated(self, revision: str) -> None:
        self._revision = revision
        self._compose_headers()
        if era_of(revision) == "legacy":
            self._start(self._listen())

    def details(self) -> Details:
        return Details()

    def skip_stop_wait(self) -> None:
        return

    async def close(self, *, graceful: bool = False) -> None:
        sink, self._sink = self._sink, None
        self._room.set()
        self._deadlines.close()
        tasks = [*self._posts.values(), *self._others]
        for task in tasks:
            task.cancel()
        client, self._client = self._client, None
        if client is None:
            return
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
            if sink is not None and self._session_id is not None:
                await self._end_session(client)
        finally:
            await client.close()

    # One message.

    async def _post(self, message: bytes, about: About, key: int | str) -> None:
        failure: TransportFailure | None = None
        try:
            failure = await self._exchange(message, about, key)
        except TooLarge:
            failure = TransportFailure("too-large", f"the answer is larger than {self._limit_bytes} bytes")
        except EventTooLarge:
            failure = TransportFailure("too-large", f"an event is larger than {self._limit_bytes} bytes")
        except asyncio.CancelledError:
            if key not in self._expired:
                raise
            failure = TransportFailure("timeout", "no answer in time")
        except Exception as error:  # border: in a task, an unexpected error would not be reported
            failure = failure_of(error)
        finally:
            self._posts.pop(key, None)
            self._expired.discard(key)
            self._deadlines.clear(key)
            if not self._room.is_set() and not self.congested:
                self._room.set()
        if failure is not None and self._sink is not None:
            self._sink.failed(about.request_id, failure)

    async def _exchange(self, message: bytes, about: About, key: int | str) -> TransportFailure | None:
        """Sends the message and delivers the reply. Returns the failure, if any."""
        if self._initialized is not None and about.method != INITIALIZED:
            await self._until_initialized()
        response = await self._answer_to(message, about)
        try:
            if not 200 <= response.status < 300:
                return await self._failure_of(response)
            if about.method == "initialize":
                self._take_session(response.headers.get("Mcp-Session-Id"))
            request_id = about.request_id
            if request_id is None:
                return None
            if content_type_of(response) == EVENTS:
                self._deadlines.clear(key)  # a stream has no time limit
                return await self._follow(response, request_id, about.is_long_lived)
            return await self._take_reply(response, request_id)
        finally:
            # Closed, not released, unless it is read to its end: the rest is not needed.
            response.close()

    def _tiny_chunks_came(self, count: int) -> None:
        if self._sink is not None:
            self._sink.unrequested(count)

    async def _failure_of(self, response: aiohttp.ClientResponse) -> TransportFailure:
        return await failure_of_status(
            response,
            in_session=self._session_id is not None,
            hide=secrets_of(self._network.headers, self._signer),
        )

    async def _answer_to(self, message: bytes, about: About) -> aiohttp.ClientResponse:
        headers = {**self._headers, **about.headers} if about.headers else self._headers
        request = OutgoingRequest("POST", str(self._address), message)
        return await send_signed(self._signer, headers, request, partial(self._send_once, message))

    async def _until_initialized(self) -> None:
        """Waits until `notifications/initialized` was sent: messages on other connections could overtake
        it."""
        if self._initialized is not None:
            await asyncio.wait([self._initialized], timeout=INITIALIZED_SECONDS)
            self._initialized = None

    def _give_up(self, key: int | str) -> None:
        self._expired.add(key)
        self._posts[key].cancel()

    async def _send_once(self, message: bytes, headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        assert self._client is not None
        hops = 0
        while True:
            response = await self._client.post(
                self._address, data=body_of(message), headers=headers, allow_redirects=False
            )
            elsewhere = self._moved_to(response)
            if elsewhere is None or hops == REDIRECT_LIMIT:
                return response
            response.close()
            self._url = elsewhere
            hops += 1

    @property
    def _address(self) -> URL:
        """The URL that messages are sent to: the target of a redirect; with credentials, which may be
        obtained after the redirect, always the URL of the entry."""
        return self._network.address if self._signer is not None and self._signer.secrets else self._url

    def _moved_to(self, response: aiohttp.ClientResponse) -> URL | None:
        """The URL of a redirect within the server's own origin, if it may be followed."""
        # With credentials no redirect is followed, not even there: `/` and `/mcp` may belong to different
        # owners.
        has_credentials = self._network.headers or (self._signer is not None and self._signer.secrets)
        if response.status not in (307, 308) or has_credentials:
            return None
        with contextlib.suppress(ValueError):
            target = self._url.join(URL(response.headers.get("Location", "")))
            if target.origin() == self._url.origin() and target != self._url and not target.user:
                return target
        return None

    async def _take_reply(self, response: aiohttp.ClientResponse, request_id: int) -> TransportFailure | None:
        body = await read_body(response, self._limit_bytes)
        if self._sink is None:
            return None
        content_type = content_type_of(response)
        if content_type != JSON:
            what = content_type if body else f"nothing (HTTP {response.status})"
            cause = f"it answered a request with {what} instead of JSON or events"
            if content_type == "text/html":
                return TransportFailure("malformed", f"{cause}: {ADDRESS_QUESTION}", hint=ADDRESS_HINT)
            return TransportFailure("malformed", cause)
        self._sink.received_on(request_id, body)
        if self._is_awaited(request_id):
            return TransportFailure("malformed", "what it answered is no reply to this request")
        return None

    # Streams of events.

    async def _follow(
        self, response: aiohttp.ClientResponse, request_id: int, is_long_lived: bool
    ) -> TransportFailure | None:
        """Delivers a stream until its request is answered, and resumes it where that is possible."""
        parser = SseParser(self._limit_bytes)
        cause = "the stream ended without the reply"
        failures = 0
        try:
            await self._deliver(response, parser, request_id)
        except FAULTS as error:
            cause = failure_of(error).cause
        while self._is_awaited(request_id):
            if not parser.last_id or self._revision not in LEGACY_REVISIONS or failures >= RESUME_LIMIT:
                return TransportFailure("broken", cause, is_long_lived=is_long_lived)
            await asyncio.sleep(_pause(parser, failures))
            try:
                async with self._get(parser.last_id) as resumed:
                    if resumed.status != 200 or content_type_of(resumed) != EVENTS:
                        failure = await self._failure_of(resumed)
                        return TransportFailure(
                            "broken", f"{cause}, and cannot be taken up again: {failure.cause}"
                        )
                    failures = 0
                    parser = _successor(parser, self._limit_bytes)
                    await self._deliver(resumed, parser, request_id)
            except FAULTS as error:
                failures += 1
                cause = failure_of(error).cause
        return None

    def _is_awaited(self, request_id: int) -> bool:
        return self._sink is not None and self._sink.awaits(request_id)

    async def _deliver(
        self, response: aiohttp.ClientResponse, parser: SseParser, request_id: int | None = None
    ) -> None:
        """Delivers the events of one stream until it ends, or until a short time after its reply."""
        watch_chunks(response, self._tiny_chunks_came)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None) as limit:
                async for chunk in response.content.iter_any():
                    for piece in in_pieces(chunk):
                        await self._pacer.next_turn()
                        self._hand_on(parser, piece, request_id)
                    if request_id is not None and not self._is_awaited(request_id) and limit.when() is None:
                        # Usually the end follows immediately, and the connection can be reused.
                        limit.reschedule(self._loop.time() + STREAM_END_SECONDS)

    def _hand_on(self, parser: SseParser, piece: bytes, request_id: int | None) -> None:
        began, idle_lines = clock(), parser.idle_lines
        too_large: EventTooLarge | None = None
        try:
            events = parser.feed(piece)
        except EventTooLarge as error:
            events, too_large = error.before, error
        unused = parser.idle_lines - idle_lines
        for event in events:
            if event.kind != "message" or not event.data or self._sink is None:
                unused += 1
            elif request_id is None:
                self._sink.received(event.data)
            else:
                self._sink.received_on(request_id, event.data)
        if unused and self._sink is not None:
            self._sink.unrequested(unused)
        self._pacer.spend(began, len(events))
        if too_large is not None:
            raise too_large

    @contextlib.asynccontextmanager
    async def _get(self, last_id: str | None) -> AsyncGenerator[aiohttp.ClientResponse]:
        assert self._client is not None
        get = partial(self._client.get, allow_redirects=False)
        headers = {name: value for name, value in self._headers.items() if name != "Content-Type"}
        headers["Accept"] = EVENTS
        if last_id:
            headers["Last-Event-ID"] = last_id
        async with asyncio.timeout(self._request_seconds):
            request = OutgoingRequest("GET", str(self._address))
            response = await send_signed(
                self._signer, headers, request, lambda signed: get(self._address, headers=signed)
            )
        try:
            yield response
        finally:
            response.close()

    async def _listen(self) -> None:
        """Keeps the stream open on which a legacy server sends requests and notifications, if it has one."""
        parser = SseParser(self._limit_bytes)
        loop = asyncio.get_running_loop()
        failures = 0
        was_open = False
        await self._until_initialized()
        while self._sink is not None:
            began = loop.time()
            try:
                async with self._get(parser.last_id) as response:
                    if response.status != 200 or content_type_of(response) != EVENTS:
                        failure = await self._failure_of(response)
                        if not self._continues_after(failure, was_open):
                            return
                    else:
                        was_open = True
                        parser = _successor(parser, self._limit_bytes)
                        await self._deliver(response, parser)
            except EventTooLarge:
                parser = SseParser(self._limit_bytes)
            except NoCredentials:
                return  # the next call fails with the reason
            except FAULTS as error:
                self._report_if_gone(failure_of(error))
            failures = 0 if loop.time() - began > LASTING_SECONDS else failures + 1
            await asyncio.sleep(_pause(parser, failures - 1))

    def _continues_after(self, failure: TransportFailure, was_open: bool) -> bool:
        status = failure.status or 0
        # If there never was a stream, 404 means the same as 405: many servers have no route for GET.
        if status == 404 and was_open and self._sink is not None:
            self._sink.failed(None, failure)
        return status >= 500 or status == 429

    def _report_if_gone(self, failure: TransportFailure) -> None:
        """Reports the end of the server, which the stream shows even while no request is running."""
        if failure.kind == "unreachable" and self._sink is not None:
            self._sink.failed(None, failure)

    # Session and headers.

    def _take_session(self, session_id: str | None) -> None:
        if session_id and session_id.isascii() and session_id.isprintable() and len(session_id) <= 4096:
            self._session_id = session_id
            self._compose_headers()

    def _compose_headers(self) -> None:
        headers = {**self._base_headers, "Content-Type": JSON, "Accept": f"{JSON}, {EVENTS}"}
        if self._session_id is not None:
            headers["Mcp-Session-Id"] = self._session_id
        if self._revision in REVISION_IN_HEADER:
            headers["MCP-Protocol-Version"] = self._revision
        self._headers = headers

    async def _end_session(self, client: aiohttp.ClientSession) -> None:
        # Optional: the session ends in any case.
        with contextlib.suppress(*FAULTS):
            async with asyncio.timeout(CLOSE_SECONDS):
                headers = self._headers
                if self._signer is not None:
                    request = OutgoingRequest("DELETE", str(self._address))
                    headers = (await self._signer.sign(headers, request)).headers
                async with client.delete(self._address, headers=headers, allow_redirects=False):
                    return

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._keep(asyncio.create_task(work, name=f"dragoman http {self._server}"))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._others.add(task)
        task.add_done_callback(self._others.discard)


def _successor(parser: SseParser, limit_bytes: int) -> SseParser:
    """The parser for a stream that resumes another: it has the last event id, and drops the incomplete
    event."""
    following = SseParser(limit_bytes)
    following.retry_ms = parser.retry_ms
    if parser.last_id is not None:
        following.feed(f"id: {parser.last_id}\n\n".encode())
    return following


def _pause(parser: SseParser, failures: int) -> float:
    """The pause that the server requested, or a second; longer after each failure."""
    retry_ms = parser.retry_ms
    asked = RETRY_SECONDS if retry_ms is None else max(retry_ms / 1000, SHORTEST_RETRY_SECONDS)
    return (
        asked
        if failures <= 0
        else min(max(asked, RETRY_SECONDS) * 2 ** min(failures, DOUBLINGS_LIMIT), RETRY_LIMIT_SECONDS)
    )
