"""HTTP+SSE of 2024-11-05 against real servers on loopback."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from yarl import URL

from dragoman.errors import ConnectError, SignInNeeded, Unreachable
from dragoman.transports import sse
from dragoman.transports.base import About
from dragoman.transports.sse import WAITING_LIMIT, SseTransport, resolve_endpoint
from dragoman.transports.web import Network
from tests.unit.transports.sinks import RecordingSink, open_files, other_tasks, settled, site


class SseSite:
    """A server of the old kind: what it is to say on its stream is put in by the test."""

    def __init__(self, opening: bytes = b"event: endpoint\ndata: /messages?s=1\n\n") -> None:
        self.opening = opening
        self.headers: list[dict[str, str]] = []
        self.posted: list[bytes] = []
        self.arrived = asyncio.Event()
        self.gone = asyncio.Event()
        self.port = 0
        self._say: asyncio.Queue[bytes | None] = asyncio.Queue()

    def say(self, *chunks: bytes | None) -> None:
        """None ends the stream."""
        for chunk in chunks:
            self._say.put_nowait(chunk)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(dict(request.headers))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        try:
            await response.write(self.opening)
            while (chunk := await self._say.get()) is not None:
                await response.write(chunk)
        finally:
            self.gone.set()
        return response

    async def message(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.headers.append(dict(request.headers))
        self.posted.append(body)
        self.arrived.set()
        return await self.answer(request, body)

    async def answer(self, request: web.Request, body: bytes) -> web.StreamResponse:
        return web.Response(status=202, text="Accepted")

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator["SseSite"]:
        routes = (web.get("/sse", self.stream), web.post("/messages", self.message))
        async with site(*routes) as self.port:
            yield self

    def transport(self, *, limit_bytes: int = 10_000, request_seconds: float = 10) -> SseTransport:
        network = Network(f"http://127.0.0.1:{self.port}/sse", {"X-Key": "k", "accept": "nonsense"})
        return SseTransport("box", network, limit_bytes=limit_bytes, request_seconds=request_seconds)


@contextlib.asynccontextmanager
async def opened(
    box: SseSite, *, limit_bytes: int = 10_000, request_seconds: float = 10
) -> AsyncIterator[tuple[SseTransport, RecordingSink]]:
    async with box.serving():
        transport = box.transport(limit_bytes=limit_bytes, request_seconds=request_seconds)
        sink = RecordingSink()
        try:
            await transport.open(sink)
            yield transport, sink
        finally:
            await transport.close()


@pytest.mark.requirement("TRN-3")
async def test_messages_are_sent_by_post_and_received_from_the_stream():
    box = SseSite()
    async with opened(box) as (transport, sink):
        transport.send(b'{"id":"1"}', About("1", "ping"))
        await asyncio.wait_for(box.arrived.wait(), 10)
        box.say(
            b'event: message\r\ndata: {"id":', b'"1"}\r\n\r\n: ping\n\nevent: other\ndata: x\n\ndata: 2\n\n'
        )
        await sink.until(lambda: len(sink.messages) == 2)

    assert box.posted == [b'{"id":"1"}']
    assert sink.messages == [b'{"id":"1"}', b"2"]
    assert sink.failures == []
    assert sink.ends == []


async def test_headers_are_sent_with_stream_and_posts_and_protocol_headers_take_precedence():
    box = SseSite()
    async with opened(box) as (transport, _):
        transport.send(b"{}")
        await asyncio.wait_for(box.arrived.wait(), 10)

    opening, post = box.headers
    assert opening["X-Key"] == post["X-Key"] == "k"
    assert opening["Accept"] == "text/event-stream"
    assert post["Content-Type"] == "application/json"


async def test_a_second_endpoint_event_is_ignored():
    box = SseSite()
    async with opened(box) as (transport, sink):
        box.say(b"event: endpoint\ndata: /elsewhere\n\ndata: x\n\n")
        await sink.until(lambda: sink.messages)
        transport.send(b"{}")
        await asyncio.wait_for(box.arrived.wait(), 10)

    assert box.posted == [b"{}"]


STREAM = URL("https://example.com/a/sse")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"/messages?s=1", "https://example.com/messages?s=1"),
        (b"messages", "https://example.com/a/messages"),
        (b"?s=1", "https://example.com/a/sse?s=1"),
        (b"https://example.com/m", "https://example.com/m"),
        (b"https://EXAMPLE.com:443/m#f", "https://example.com/m"),
        (b"//example.com/m", "https://example.com/m"),
        (b" /m \t", "https://example.com/m"),
        (b"/m?s=%2Fx%20y", "https://example.com/m?s=/x%20y"),
    ],
)
def test_an_endpoint_of_the_same_origin_is_accepted(data: bytes, expected: str):
    endpoint = resolve_endpoint(STREAM, data)

    assert isinstance(endpoint, URL)
    assert str(endpoint) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"http://example.com/m",
        b"https://example.com:8443/m",
        b"https://evil.com/m",
        b"//evil.com/m",
        b"///evil.com/m",
        b"https://example.com@evil.com/m",
        b"https://example.com.evil.com/m",
        b"https://evil.com\\@example.com/m",
        b"\\\\evil.com/m",
        b"https:/\\evil.com/m",
        b"https://user:secret@example.com/m",
        b"https://user@example.com/m",
        b"javascript:alert(1)",
        b"file:///etc/passwd",
        b"ws://example.com/m",
        b"https://example.com:99999/m",
        b"https://[::1/m",
        b"https://",
        b"",
        b"   ",
        b"/m\0",
        b"/m\nx",
        b"/m\xff",
        "/m\u202e".encode(),
        b"/" + b"m" * 10_000,
    ],
)
@pytest.mark.requirement("TRN-3")
def test_an_endpoint_of_another_origin_or_kind_is_refused(data: bytes):
    endpoint = resolve_endpoint(STREAM, data)

    if isinstance(endpoint, URL):
        # Odd spellings may be a path of the very same origin; they are never another one.
        assert endpoint.origin() == STREAM.origin()
        assert endpoint.user is None
        assert b"\\" in data or data in (b"///evil.com/m", b"https://")
    else:
        assert "secret" not in endpoint


@pytest.mark.requirement("TRN-3")
async def test_an_endpoint_of_another_origin_is_sent_nothing():
    other = SseSite()
    async with other.serving():
        box = SseSite(f"event: endpoint\ndata: http://127.0.0.1:{other.port}/messages\n\n".encode())
        with pytest.raises(Unreachable, match="another origin") as caught:
            async with opened(box):
                pass

    assert caught.value.server == "box"
    assert caught.value.hint
    assert other.headers == []


@pytest.mark.parametrize("status", [401, 403])
async def test_a_stream_answered_with_401_needs_authentication(status: int):
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"WWW-Authenticate": 'Bearer scope="x"'})

    async with site(web.get("/sse", refuse)) as port:
        transport = SseTransport(
            "box", Network(f"http://127.0.0.1:{port}/sse"), limit_bytes=100, request_seconds=5
        )
        with pytest.raises(SignInNeeded) as caught:
            await transport.open(RecordingSink())

    assert caught.value.status == status
    assert caught.value.challenge == 'Bearer scope="x"'


async def test_a_redirect_is_not_followed():
    visited: list[str] = []

    async def elsewhere(request: web.Request) -> web.Response:
        visited.append(request.path)
        return web.Response()

    async def redirect(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect("/other")

    async with site(web.get("/sse", redirect), web.get("/other", elsewhere)) as port:
        transport = SseTransport(
            "box", Network(f"http://127.0.0.1:{port}/sse"), limit_bytes=100, request_seconds=5
        )
        with pytest.raises(Unreachable, match="307") as caught:
            await transport.open(RecordingSink())

    assert caught.value.status == 307
    assert visited == []


async def test_an_answer_that_is_not_an_event_stream_is_refused():
    async def page(request: web.Request) -> web.Response:
        return web.Response(text="<html>", content_type="text/html")

    async with site(web.get("/sse", page)) as port:
        transport = SseTransport(
            "box", Network(f"http://127.0.0.1:{port}/sse"), limit_bytes=100, request_seconds=5
        )
        with pytest.raises(Unreachable, match="text/html"):
            await transport.open(RecordingSink())


async def test_a_closed_port_is_unreachable():
    async with site() as port:
        pass
    transport = SseTransport(
        "box", Network(f"http://127.0.0.1:{port}/sse"), limit_bytes=100, request_seconds=5
    )
    with pytest.raises(Unreachable, match="refused"):
        await transport.open(RecordingSink())
    with pytest.raises(ConnectionError):
        transport.send(b"{}")


@pytest.mark.parametrize(
    ("opening", "said"),
    [
        (b"", [None]),
        (b"data: x\n\n", [None]),
        (b": only a comment\n\n", [None]),
        (b"data: " + b"x" * 5000, []),
    ],
)
async def test_a_stream_that_ends_without_an_endpoint_is_unreachable(
    opening: bytes, said: list[bytes | None]
):
    box = SseSite(opening)
    box.say(*said)
    with pytest.raises(Unreachable, match="before it sent the endpoint for messages"):
        async with opened(box, limit_bytes=1000):
            pass


async def test_a_stream_that_ends_with_the_endpoint_is_unreachable_and_not_lost():
    box = SseSite()
    box.say(None)
    sink = RecordingSink()
    async with box.serving():
        transport = box.transport()
        try:
            await transport.open(sink)
        except ConnectError:
            assert sink.ends == []
        else:
            await sink.until(lambda: sink.ends)
        await transport.close()


async def test_the_wait_for_the_endpoint_has_a_time_limit():
    with pytest.raises(Unreachable, match="no answer in time"):
        async with opened(SseSite(b": hello\n\n"), request_seconds=0.2):
            pass


async def test_a_cancelled_open_leaves_nothing_behind():
    box = SseSite(b": hello\n\n")
    async with box.serving():
        before = other_tasks()
        transport = box.transport()
        opening = asyncio.create_task(transport.open(RecordingSink()))
        await settled(lambda: box.headers)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

        await asyncio.wait_for(box.gone.wait(), 10)
        await settled(lambda: other_tasks() == before)


async def test_a_close_during_open_ends_it():
    box = SseSite(b": hello\n\n")
    async with box.serving():
        transport = box.transport()
        opening = asyncio.create_task(transport.open(RecordingSink()))
        await settled(lambda: box.headers)
        await transport.close()
        with pytest.raises(Unreachable):
            await asyncio.wait_for(opening, 5)


async def test_the_end_of_the_stream_is_reported_once_and_nothing_can_be_sent_afterwards():
    box = SseSite()
    async with opened(box) as (transport, sink):
        box.say(b"data: last\n\n", None)
        await sink.until(lambda: sink.ends)
        with pytest.raises(ConnectionError):
            transport.send(b"{}")

    assert sink.messages == [b"last"]
    assert sink.ends == ["it ended its event stream"]


async def test_no_end_is_reported_after_a_close():
    box = SseSite()
    async with opened(box) as (transport, sink):
        await transport.close()
        await transport.close()
        await asyncio.wait_for(box.gone.wait(), 10)

    assert sink.ends == []


@pytest.mark.requirement("TRN-9")
async def test_an_event_over_the_limit_is_reported_with_both_ends_and_the_stream_continues():
    box = SseSite()
    async with opened(box, limit_bytes=1000) as (_, sink):
        box.say(b'data: {"result":"' + b"x" * 2000, b'","id":"7"}\n\n', b"data: next\n\n")
        await sink.until(lambda: sink.messages)

    assert sink.messages == [b"next"]
    assert sink.large[-1][0].startswith(b'{"result":"xxx')
    assert sink.large[-1][1].endswith(b'"id":"7"}')
    assert sink.ends == []


@pytest.mark.requirement("TRN-9")
async def test_an_event_without_end_ends_the_connection():
    box = SseSite()
    async with opened(box, limit_bytes=1000) as (_, sink):
        for _ in range(10):
            box.say(b"x" * 1000)
        await sink.until(lambda: sink.ends)

    assert "limit of 1000 bytes" in sink.ends[0]


class Answering(SseSite):
    """Answers each POST as the table says."""

    def __init__(self, **statuses: int) -> None:
        super().__init__()
        self._statuses = statuses

    async def answer(self, request: web.Request, body: bytes) -> web.StreamResponse:
        status = self._statuses.get(body.decode(), 202)
        if status == 0:
            assert request.transport is not None
            request.transport.abort()
        return web.Response(status=status or 202, headers={"Location": "/other"})


async def test_a_failed_post_fails_its_own_message_only():
    box = Answering(a=500, b=404, c=0, d=307, e=401)
    async with opened(box) as (transport, sink):
        for name in "abcdefg":
            transport.send(name.encode(), About(None if name == "b" else name))
        await sink.until(lambda: len(sink.failures) == 5)
        await settled(lambda: len(box.posted) == 7)
        box.say(b"data: still here\n\n")
        await sink.until(lambda: sink.messages)

    failed = dict(sink.failures)
    assert set(failed) == {"a", None, "c", "d", "e"}
    assert (failed["a"].kind, failed["a"].status, failed["a"].may_have_run) == ("status", 500, True)
    assert (failed[None].status, failed[None].in_session) == (404, True)
    assert (failed["c"].kind, failed["c"].may_have_run) == ("broken", True)
    assert (failed["d"].status, failed["d"].may_have_run) == (307, False)
    assert failed["e"].status == 401
    assert sink.ends == []
    assert box.posted == [name.encode() for name in "abcdefg"]


class Holding(SseSite):
    """Answers no POST until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.release = asyncio.Event()

    async def answer(self, request: web.Request, body: bytes) -> web.StreamResponse:
        if body.startswith(b"hold"):
            await self.release.wait()
        return web.Response(status=202)


@pytest.mark.requirement("TRN-3")
async def test_posts_keep_their_order():
    box = SseSite()
    async with opened(box) as (transport, _):
        sent = [str(number).encode() for number in range(50)]
        for message in sent:
            transport.send(message, About(message.decode()))
        await settled(lambda: len(box.posted) == 50)

    assert box.posted == sent


async def test_a_post_that_hangs_delays_the_next_only_briefly():
    box = Holding()
    async with opened(box) as (transport, sink):
        transport.send(b"hold", About("1"))
        transport.send(b"next", About("2"))
        await settled(lambda: box.posted == [b"hold", b"next"])
        box.release.set()

    assert sink.failures == []


async def test_a_request_does_not_overtake_a_notification(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sse, "BEHIND_REQUEST_SECONDS", 0.0)
    box = Holding()
    async with opened(box) as (transport, _):
        transport.send(b"hold")
        transport.send(b"request", About("1"))
        await settled(lambda: box.posted)
        assert transport.abandon("1")
        transport.send(b"request again", About("2"))
        box.release.set()
        await settled(lambda: len(box.posted) == 2)

    assert box.posted == [b"hold", b"request again"]


@pytest.mark.requirement("TRN-3", "TRN-9")
async def test_each_post_has_a_time_limit_and_the_stream_has_none():
    box = Holding()
    async with opened(box, request_seconds=0.3) as (transport, sink):
        transport.send(b"hold", About("1"))
        await sink.until(lambda: sink.failures)
        box.say(b"data: after the limit\n\n")
        await sink.until(lambda: sink.messages)
        box.release.set()

    ((request_id, trouble),) = sink.failures
    assert (request_id, trouble.kind, trouble.may_have_run) == ("1", "timeout", True)
    assert sink.ends == []


@pytest.mark.requirement("TRN-9")
async def test_a_post_that_is_answered_after_its_work_may_take_as_long_as_the_call():
    box = Holding()
    async with opened(box, request_seconds=0.05) as (transport, sink):
        sink.answered.add("2")
        transport.send(b"hold", About("1", timeout_seconds=1e8))
        transport.send(b"hold", About("2", timeout_seconds=1e8))
        await sink.until(lambda: sink.failures)
        assert [request_id for request_id, _ in sink.failures] == ["2"]
        box.release.set()
        await settled(lambda: not transport._posts)

    assert [request_id for request_id, _ in sink.failures] == ["2"]


async def test_many_posts_that_wait_are_congestion(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sse, "BEHIND_REQUEST_SECONDS", 60.0)
    box = Holding()
    async with opened(box) as (transport, _):
        for number in range(WAITING_LIMIT):
            assert not transport.congested
            transport.send(b"hold" if number == 0 else b"x", About(str(number)))
        assert transport.congested
        waiting = asyncio.create_task(transport.drained())
        await settled(lambda: box.posted)
        assert not waiting.done()
        box.release.set()
        await asyncio.wait_for(waiting, 10)
        assert not transport.congested


async def test_a_wait_for_a_congested_transport_ends_with_the_connection():
    box = Holding()
    async with opened(box) as (transport, _):
        for number in range(WAITING_LIMIT):
            transport.send(b"hold", About(str(number)))
        waiting = asyncio.create_task(transport.drained())
        await settled(lambda: box.posted)
        await transport.close()
        await asyncio.wait_for(waiting, 10)
        box.release.set()


async def test_closing_leaves_no_task_and_no_file_open():
    box = Holding()
    async with box.serving():
        tasks, files = other_tasks(), open_files()
        for _ in range(3):
            transport = box.transport()
            await transport.open(RecordingSink())
            transport.send(b"hold", About("1"))
            transport.send(b"x", About("2"))
            await settled(lambda: b"hold" in box.posted)
            await asyncio.wait_for(transport.close(), 5)
        box.release.set()
        await settled(lambda: other_tasks() == tasks and open_files() <= files)


async def test_an_oversized_answer_to_a_post_is_not_read_to_the_end():
    class Chatty(SseSite):
        async def answer(self, request: web.Request, body: bytes) -> web.StreamResponse:
            return web.Response(body=b"x" * 10_000_000)

    box = Chatty()
    async with opened(box) as (transport, sink):
        transport.send(b"1", About("1"))
        transport.send(b"2", About("2"))
        await settled(lambda: len(box.posted) == 2)

    assert sink.failures == []
