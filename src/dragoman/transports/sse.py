"""HTTP+SSE of revision 2024-11-05: one event stream brings all messages of the server, and each message to it
is a POST request.

The address for POST requests comes from the stream and must have the stream's origin. POST requests have a
time limit; the stream has none. A failure of one POST request is reported for that message only. An event
over the size limit fails the request it answers and not the stream.

Order: POST requests start in the order of `send`, each after the one before it was answered. This wait is
short, because a POST request that hangs would otherwise delay all others, and because some servers answer the
POST request only after the work is done, so that calls would wait for one another. A server does no work for
a notification, so the wait after one is longer: the first request must not overtake
`notifications/initialized`.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import Final

import aiohttp
from yarl import URL

from dragoman.cleaning import one_line
from dragoman.credentials import Credentials, OutgoingRequest
from dragoman.errors import ConnectError, Unreachable
from dragoman.transports.base import (
    ADDRESS_QUESTION,
    About,
    Details,
    Sink,
    TransportFailure,
    connect_error,
)
from dragoman.transports.credentials import (
    Signer,
    secrets_of,
    send_signed,
    with_overrides,
)
from dragoman.transports.pacing import Pacer, clock
from dragoman.transports.sse_events import EventTooLarge, SseEvent, SseParser, in_pieces
from dragoman.transports.watched_connection import watch_chunks
from dragoman.transports.web import (
    EVENTS,
    FAULTS,
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

WAITING_LIMIT: Final = 128
"""The maximum number of POST requests that are not yet answered; more wait."""
BEHIND_REQUEST_SECONDS: Final = 0.25
BEHIND_NOTIFICATION_SECONDS: Final = 5.0
ANSWER_BYTES: Final = 64 * 1024
"""The answer to a POST request only accepts it. It is read up to this size, so that its connection can be
reused."""
ENDPOINT_BYTES: Final = 8192
CLOSE_SECONDS: Final = 2.0


class SseTransport:
    wants_about = True
    sends_message_headers = False

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
        self._client: aiohttp.ClientSession | None = None
        self._stream: aiohttp.ClientResponse | None = None
        self._sink: Sink | None = None
        """None once the end has been reported or requested: nothing is delivered after that."""
        self._is_open = False
        self._early_end: str | None = None
        """Why the stream ended before `open` was done."""
        self._endpoint: URL | None = None
        self._post_headers = with_overrides(self._base_headers, {"Content-Type": "application/json"})
        self._queue: deque[tuple[bytes, About]] = deque()
        self._queued = asyncio.Event()
        self._posts: set[asyncio.Task[None]] = set()
        self._loops: list[asyncio.Task[None]] = []
        """The task that reads the stream, and the task that starts POST requests."""
        self._room = asyncio.Event()
        self._room.set()
        self._pacer = Pacer()

    async def open(self, sink: Sink) -> None:
        self._sink = sink
        try:
            async with asyncio.timeout(self._request_seconds):
                await self._open_stream(sink)
        except BaseException as error:
            await self.close()
            if isinstance(error, FAULTS):
                raise connect_error(self._server, failure_of(error)) from None
            raise

    def send(self, message: bytes, about: About | None = None) -> None:
        if self._sink is None:
            raise ConnectionError("the event stream is closed")
        self._queue.append((message, about or About()))
        self._queued.set()
        if self.congested:
            self._room.clear()

    @property
    def congested(self) -> bool:
        return len(self._queue) + len(self._posts) >= WAITING_LIMIT

    async def drained(self) -> None:
        await self._room.wait()

    def abandon(self, request_id: int) -> bool:
        """Drops a message that still waits. It was not sent, so the server need not be notified."""
        for waiting in self._queue:
            if waiting[1].request_id == request_id:
                self._queue.remove(waiting)
                self._make_room()
                return True
        return False

    def negotiated(self, revision: str) -> None:
        return

    def details(self) -> Details:
        return Details()

    def skip_stop_wait(self) -> None:
        return

    async def close(self, *, graceful: bool = False) -> None:
        self._sink = None
        self._queue.clear()
        self._room.set()
        tasks = [*self._loops, *self._posts]
        for task in tasks:
            task.cancel()
        stream, self._stream = self._stream, None
        client, self._client = self._client, None
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        finally:
            if stream is not None:
                stream.close()
            if client is not None:
                await client.close()

    # The stream.

    async def _open_stream(self, sink: Sink) -> None:
        self._client = client = open_client(self._server, self._network)
        headers = with_overrides(self._base_headers, {"Accept": EVENTS})
        self._stream = stream = await send_signed(
            self._signer,
            headers,
            OutgoingRequest("GET", self._network.url),
            lambda signed: client.get(self._network.address, headers=signed, allow_redirects=False),
        )
        watch_chunks(stream, sink.unrequested)
        if stream.status != 200:
            raise connect_error(
                self._server,
                await failure_of_status(stream, hide=secrets_of(self._network.headers, self._signer)),
            )
        content_type = content_type_of(stream)
        if content_type != EVENTS:
            cause = f"it answers with {content_type} and not with an event stream"
            raise self._refusal(
                f"{cause}: {ADDRESS_QUESTION}" if content_type == "text/html" else cause,
                hint="Is this the URL of its event stream? For a Streamable HTTP server the type is http.",
            )
        announced: asyncio.Future[SseEvent] = asyncio.get_running_loop().create_future()
        reader = asyncio.create_task(self._read(stream, sink, announced), name=f"events of {self._server}")
        self._loops.append(reader)
        self._endpoint = self._same_origin(await announced)
        if self._early_end is not None:
            raise self._refusal(self._early_end)
        self._is_open = True
        self._loops.append(asyncio.create_task(self._start_posts(), name=f"messages to {self._server}"))

    def _refusal(self, cause: str, *, hint: str | None = None) -> ConnectError:
        return Unreachable(self._server, "connect", cause, hint=hint)

    async def _read(
        self, stream: aiohttp.ClientResponse, sink: Sink, announced: asyncio.Future[SseEvent]
    ) -> None:
        parser = SseParser(self._limit_bytes, sink.oversized)
        cause = "the connection was closed"
        try:
            async for chunk in stream.content.iter_any():
                for piece in in_pieces(chunk):
                    await self._pacer.next_turn()
                    self._hand_on(parser, piece, announced)
            cause = "it ended its event stream"
        except EventTooLarge as error:
            for event in error.before:
                self._deliver(event, announced)
            cause = f"it sent an event far over the limit of {self._limit_bytes} bytes"
        except FAULTS as error:
            cause = failure_of(error).cause
        finally:
            self._stream_ended(cause, announced)

    def _hand_on(self, parser: SseParser, piece: bytes, announced: asyncio.Future[SseEvent]) -> None:
        began, idle_lines = clock(), parser.idle_lines
        events = parser.feed(piece)
        unused = parser.idle_lines - idle_lines
        for event in events:
            unused += not self._deliver(event, announced)
        if unused and self._sink is not None:
            self._sink.unrequested(unused)
        self._pacer.spend(began, len(events))

    def _stream_ended(self, cause: str, announced: asyncio.Future[SseEvent]) -> None:
        if self._is_open:
            sink, self._sink = self._sink, None
            self._queue.clear()
            self._room.set()
            if sink is not None:
                sink.lost(cause)
        elif announced.done():
            self._early_end = cause
        else:
            announced.set_exception(self._refusal(f"{cause} before it sent the endpoint for messages"))

    def _deliver(self, event: SseEvent, announced: asyncio.Future[SseEvent]) -> bool:
        """Delivers an event; returns false if it contains no message."""
        if event.kind == "message" and event.data and self._sink is not None:
            self._sink.received(event.data)
            return True
        if event.kind == "endpoint" and not announced.done():
            # Only the first is used: a later one could redirect the messages unnoticed.
            announced.set_result(event)
            return True
        return False

    def _same_origin(self, event: SseEvent) -> URL:
        endpoint = resolve_endpoint(self._network.address, event.data)
        if isinstance(endpoint, str):
            hint = "If you trust it, use its origin in the entry's url; the event stream must be there too."
            raise self._refusal(endpoint, hint=hint)
        return endpoint

    # The messages.

    async def _start_posts(self) -> None:
        while True:
            while not self._queue:
                self._queued.clear()
                await self._queued.wait()
            message, about = self._queue.popleft()
            post = asyncio.create_task(self._post(message, about))
            self._posts.add(post)
            post.add_done_callback(self._posted)
            seconds = BEHIND_NOTIFICATION_SECONDS if about.request_id is None else BEHIND_REQUEST_SECONDS
            await asyncio.wait((post,), timeout=seconds)

    def _posted(self, post: asyncio.Task[None]) -> None:
        self._posts.discard(post)
        self._make_room()

    def _make_room(self) -> None:
        if not self.congested:
            self._room.set()

    async def _post(self, message: bytes, about: About) -> None:
        posting = asyncio.create_task(self._exchange(message))
        try:
            failure = await self._in_time(posting, about)
        finally:
            posting.cancel()
            await asyncio.wait([posting])
        if failure is not None and self._sink is not None:
            self._sink.failed(about.request_id, failure)

    async def _in_time(
        self, posting: asyncio.Task[TransportFailure | None], about: About
    ) -> TransportFailure | None:
        """Waits for the answer to a POST request as long as the reply may take: some servers answer it only
        after the work is done.

        A POST request that is unanswered although its reply was received, or is no longer needed, is given up
        after the ordinary time limit, because it takes the place of another.
        """
        loop = asyncio.get_running_loop()
        longest = answer_seconds(about, self._request_seconds)
        last = math.inf if longest is None else loop.time() + longest
        while True:
            await asyncio.wait([posting], timeout=self._request_seconds)
            if posting.done():
                return posting.result()
            if loop.time() >= last or not self._is_awaited(about.request_id):
                return TransportFailure("timeout", "no answer in time")

    def _is_awaited(self, request_id: int | None) -> bool:
        return request_id is not None and self._sink is not None and self._sink.awaits(request_id)

    async def _exchange(self, message: bytes) -> TransportFailure | None:
        """Sends a message; returns the failure if it was not accepted."""
        client, endpoint = self._client, self._endpoint
        assert client is not None
        assert endpoint is not None
        try:
            async with await send_signed(
                self._signer,
                self._post_headers,
                OutgoingRequest("POST", str(endpoint), message),
                lambda signed: client.post(
                    endpoint, data=body_of(message), headers=signed, allow_redirects=False
                ),
            ) as response:
                if 200 <= response.status < 300:
                    await _finish(response)
                    return None
                # The address belongs to this one stream, like a session id.
                return await failure_of_status(
                    response, in_session=True, hide=secrets_of(self._network.headers, self._signer)
                )
        except FAULTS as error:
            return failure_of(error)


async def _finish(response: aiohttp.ClientResponse) -> None:
    """Reads the rest of an accepting answer. Errors in it are ignored, because the message is delivered."""
    try:
        await read_body(response, ANSWER_BYTES)
    except (TooLarge, *FAULTS):
        response.close()


def resolve_endpoint(stream: URL, data: bytes) -> URL | str:
    """The URL for messages, or a text that says why the address cannot be used."""
    if len(data) > ENDPOINT_BYTES:
        return "the URL it gives for messages is too long"
    try:
        text = data.decode("utf-8").strip()
        endpoint = stream.join(URL(text)).with_fragment(None)
        host, port = endpoint.host, endpoint.port
    except ValueError:
        return "the URL it gives for messages cannot be read"
    if not text or not text.isprintable():
        return "the URL it gives for messages cannot be read"
    if (endpoint.scheme, host, port) != (stream.scheme, stream.host, stream.port):
        place = f"{endpoint.scheme}://{endpoint.host}" + (f":{port}" if endpoint.explicit_port else "")
        return f"it wants messages sent to another origin, {one_line(place, 300)}"
    if endpoint.user not in (None, stream.user) or endpoint.password not in (None, stream.password):
        return "the URL it gives for messages holds a user or password"
    return endpoint
