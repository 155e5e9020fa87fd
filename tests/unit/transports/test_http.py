"""Streamable HTTP against real servers on loopback."""

import asyncio
import contextlib
import gzip
import json
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

import pytest
from aiohttp import web

from dragoman.credentials import Challenge
from dragoman.transports import http
from dragoman.transports.base import About, TransportFailure
from dragoman.transports.http import HttpTransport
from dragoman.transports.web import Network
from tests.unit.transports.sinks import RecordingSink, open_files, other_tasks, settled, site

pytestmark = pytest.mark.requirement("TRN-2")

MODERN, LEGACY, OLD = "2026-07-28", "2025-11-25", "2025-03-26"


class Waits(RecordingSink):
    """Awaits the replies to what was sent, as a session does."""

    def __init__(self) -> None:
        super().__init__()
        self.awaited: set[str] = set()

    def received(self, message: bytes) -> None:
        with contextlib.suppress(ValueError, AttributeError):
            self.awaited.discard(json.loads(message).get("id"))
        super().received(message)

    def failed(self, request_id: str | None, trouble: TransportFailure) -> None:
        self.awaited.discard(request_id or "")
        super().failed(request_id, trouble)

    def awaits(self, request_id: str) -> bool:
        return request_id in self.awaited


Answer = Callable[[web.Request, Any], Awaitable[web.StreamResponse]]


def reply(request_id: object, **result: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}).encode()


def event(data: bytes, **fields: object) -> bytes:
    lines = [f"{name}: {value}\n".encode() for name, value in fields.items()]
    return b"".join(lines) + b"data: " + data + b"\n\n"


async def as_json(request: web.Request, message: Any) -> web.StreamResponse:
    if "id" not in message:
        return web.Response(status=202)
    return web.Response(body=reply(message["id"]), content_type="application/json")


async def not_here(request: web.Request, message: Any) -> web.StreamResponse:
    return web.Response(status=405)


async def stream(request: web.Request, *pieces: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    for piece in pieces:
        await response.write(piece)
    return response


class Box:
    """A server whose answers the test gives; it remembers what came."""

    def __init__(self, post: Answer = as_json, get: Answer = not_here, delete: Answer = not_here) -> None:
        self._answers = {"POST": post, "GET": get, "DELETE": delete}
        self.seen: list[tuple[str, Mapping[str, str], Any]] = []
        self.times: list[float] = []
        self.paths: list[str] = []
        self.gone = asyncio.Event()
        self.came = asyncio.Event()
        self.port = 0

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        message = json.loads(body) if body else None
        self.seen.append((request.method, request.headers.copy(), message))
        self.times.append(asyncio.get_running_loop().time())
        self.paths.append(request.path_qs)
        self.came.set()
        try:
            return await self._answers[request.method](request, message)
        except asyncio.CancelledError:
            self.gone.set()
            raise

    def of(self, method: str) -> list[tuple[Mapping[str, str], Any]]:
        return [(headers, message) for name, headers, message in self.seen if name == method]

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncGenerator["Box"]:
        async with site(web.route("*", "/{rest:.*}", self._handle)) as self.port:
            yield self


class Line:
    """A transport to a box, and what it delivered."""

    def __init__(self, box: Box, transport: HttpTransport) -> None:
        self.box = box
        self.transport = transport
        self.sink = Waits()

    def post(self, request_id: str | None, method: str = "x", **about: Any) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if request_id is not None:
            message["id"] = request_id
            self.sink.awaited.add(request_id)
        self.transport.send(json.dumps(message).encode(), About(request_id, method, **about))

    async def ask(self, request_id: str = "r1", method: str = "x", **about: Any) -> TransportFailure | None:
        """Sends a request and waits for its end: the trouble, or None if the reply came."""
        self.post(request_id, method, **about)
        await self.sink.until(lambda: request_id not in self.sink.awaited)
        return next((trouble for key, trouble in self.sink.failures if key == request_id), None)

    @property
    def results(self) -> list[Any]:
        return [json.loads(message) for message in self.sink.messages]


@contextlib.asynccontextmanager
async def line(
    box: Box,
    *,
    revision: str | None = None,
    headers: Mapping[str, str] | None = None,
    limit_bytes: int = 100_000,
    request_seconds: float = 10,
    credentials: Any = None,
    client_session_id: str | None = None,
) -> AsyncGenerator[Line]:
    async with box.serving():
        network = Network(f"http://127.0.0.1:{box.port}/mcp", headers or {})
        transport = HttpTransport(
            "box",
            network,
            limit_bytes=limit_bytes,
            request_seconds=request_seconds,
            credentials=credentials,
            client_session_id=client_session_id,
        )
        connected = Line(box, transport)
        await transport.open(connected.sink)
        try:
            if revision is not None:
                transport.negotiated(revision)
            yield connected
        finally:
            async with asyncio.timeout(10):
                await transport.close()


# --- one request, one POST ---


async def test_a_json_reply_is_delivered():
    async with line(Box()) as one:
        assert await one.ask("r1", headers={"Mcp-Method": "x"}) is None

    ((headers, message),) = one.box.of("POST")
    assert one.results == [{"jsonrpc": "2.0", "id": "r1", "result": {}}]
    assert message == {"jsonrpc": "2.0", "method": "x", "id": "r1"}
    assert headers["Content-Type"] == "application/json"
    assert headers["Accept"] == "application/json, text/event-stream"
    assert headers["Mcp-Method"] == "x"
    assert not {"MCP-Protocol-Version", "Mcp-Session-Id", "Last-Event-ID"} & set(headers)


async def test_a_reply_in_an_event_stream_is_delivered_with_the_messages_before_it():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        note = b'{"jsonrpc":"2.0","method":"notifications/progress"}'
        return await stream(
            request,
            b": keep-alive\n\n",
            event(note),
            b"event: other\ndata: no\n\n",
            event(reply(message["id"])),
        )

    async with line(Box(answer)) as one:
        assert await one.ask() is None

    assert [message.get("method", "reply") for message in one.results] == ["notifications/progress", "reply"]


async def test_a_notification_needs_no_answer():
    async with line(Box()) as one:
        one.post(None, "notifications/x")
        await one.box.came.wait()
        assert await one.ask() is None

    assert one.sink.failures == []
    assert len(one.results) == 1


async def test_a_refused_notification_is_reported_without_a_request():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        return web.Response(status=400)

    async with line(Box(answer)) as one:
        one.post(None, "notifications/x")
        await one.sink.until(lambda: one.sink.failures)

    ((request_id, trouble),) = one.sink.failures
    assert (request_id, trouble.status) == (None, 400)


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (lambda: web.Response(status=202), "nothing (HTTP 202)"),
        (lambda: web.Response(status=204), "nothing (HTTP 204)"),
        (lambda: web.Response(status=200), "nothing (HTTP 200)"),
        (lambda: web.Response(text="<html>", content_type="text/html"), "text/html"),
        (lambda: web.Response(body=reply("r1"), content_type="text/plain"), "text/plain"),
        (
            lambda: web.Response(body=reply("other"), content_type="application/json"),
            "no reply to this request",
        ),
        (lambda: web.Response(body=b"no json", content_type="application/json"), "no reply to this request"),
        (lambda: web.Response(body=b"", content_type="application/json"), "no reply to this request"),
    ],
    ids=["202", "204", "200 empty", "html", "text", "foreign id", "no json", "empty json"],
)
async def test_an_answer_that_is_not_a_reply_fails_the_request_at_once(
    response: Callable[[], web.Response], words: str
):
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        return response()

    async with asyncio.timeout(5), line(Box(answer)) as one:
        trouble = await one.ask()

    assert trouble is not None
    assert trouble.kind == "malformed"
    assert words in trouble.cause


async def test_a_stream_that_ends_without_the_reply_fails_the_request():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        return await stream(request, event(reply("other")))

    async with line(Box(answer), revision=MODERN) as one:
        trouble = await one.ask(is_long_lived=True)

    assert trouble is not None
    assert (trouble.kind, trouble.may_have_run, trouble.is_long_lived) == ("broken", True, True)


async def test_a_status_is_reported_with_its_body_and_headers():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        return web.Response(status=429, text="slowly", headers={"Retry-After": "3"})

    async with line(Box(answer)) as one:
        trouble = await one.ask()

    assert trouble is not None
    assert (trouble.kind, trouble.status, trouble.retry_after_seconds) == ("status", 429, 3)
    assert (trouble.in_session, trouble.body) == (False, b"slowly")


async def test_a_failure_of_one_request_is_reported_for_that_request_only():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        if message["id"] == "bad":
            assert request.transport is not None
            request.transport.close()
        return await as_json(request, message)

    async with line(Box(answer)) as one:
        one.post("bad")
        one.post("good")
        await one.sink.until(lambda: not one.sink.awaited)

    ((request_id, trouble),) = one.sink.failures
    assert (request_id, trouble.kind) == ("bad", "broken")
    assert len(one.box.of("POST")) == 2  # nothing is sent twice
    assert [message["id"] for message in one.results] == ["good"]


async def test_a_closed_port_is_unreachable_and_the_call_did_not_run():
    box = Box()
    async with line(box):
        pass
    transport = HttpTransport(
        "box", Network(f"http://127.0.0.1:{box.port}/mcp"), limit_bytes=1000, request_seconds=10
    )
    one = Line(box, transport)
    await transport.open(one.sink)
    trouble = await one.ask()
    await transport.close()

    assert trouble is not None
    assert (trouble.kind, trouble.may_have_run) == ("unreachable", False)


@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("is_stream", [False, True])
async def test_nothing_is_read_beyond_the_limit(is_compressed: bool, is_stream: bool):
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        if message["id"] == "small":
            return await as_json(request, message)
        body = reply(message["id"], x="x" * 1_000_000)
        body = event(body) if is_stream else body
        kind = "text/event-stream" if is_stream else "application/json"
        encoding = {"Content-Encoding": "gzip"} if is_compressed else {}
        body = gzip.compress(body) if is_compressed else body
        return web.Response(body=body, headers={"Content-Type": kind, **encoding})

    async with line(Box(answer)) as one:
        trouble = await one.ask("large")
        assert await one.ask("small") is None

    assert trouble is not None
    assert trouble.kind == "too-large"


@pytest.mark.requirement("TRN-9")
async def test_events_before_one_over_the_limit_are_delivered():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        note = b'{"jsonrpc":"2.0","method":"notifications/progress"}'
        return await stream(request, event(note) + event(b"x" * 200_000))

    async with line(Box(answer)) as one:
        trouble = await one.ask()

    assert trouble is not None
    assert trouble.kind == "too-large"
    assert [message["method"] for message in one.results] == ["notifications/progress"]


@pytest.mark.requirement("TRN-9")
async def test_an_answer_that_is_not_a_stream_has_a_time_limit():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with line(Box(answer), request_seconds=0.05) as one:
        trouble = await one.ask()
        await asyncio.wait_for(one.box.gone.wait(), 5)

    assert trouble is not None
    assert (trouble.kind, trouble.may_have_run) == ("timeout", True)


@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("seconds", [30, 1e5, 1e8, math.inf])
async def test_a_longer_request_timeout_extends_the_time_limit_of_the_answer(seconds: float):
    may_answer = asyncio.Event()

    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        if message["id"] == "slow":
            await may_answer.wait()
        if message["id"] == "slower":
            await asyncio.Event().wait()
        return await as_json(request, message)

    async with line(Box(answer), request_seconds=0.05) as one:
        one.post("slow", timeout_seconds=seconds)
        assert await one.ask("slower") is not None
        may_answer.set()
        await one.sink.until(lambda: not one.sink.awaited)

    assert [message["id"] for message in one.results] == ["slow"]


@pytest.mark.requirement("TRN-9")
async def test_a_stream_has_no_time_limit():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        if message["id"] == "timed":
            await asyncio.Event().wait()
        response = await stream(request, b": here\n\n")
        await may_answer.wait()
        await response.write(event(reply(message["id"])))
        return response

    may_answer = asyncio.Event()
    async with line(Box(answer), request_seconds=0.1) as one:
        one.post("long")
        assert await one.ask("timed") is not None  # so much time has passed
        may_answer.set()
        await one.sink.until(lambda: not one.sink.awaited)

    assert [request_id for request_id, _ in one.sink.failures] == ["timed"]


async def test_a_stream_that_stays_open_after_the_reply_is_closed():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        await stream(request, event(reply(message["id"])))
        await asyncio.Event().wait()
        raise AssertionError

    async with asyncio.timeout(5), line(Box(answer)) as one:
        assert await one.ask() is None
        await one.box.gone.wait()

    assert one.sink.failures == []


async def test_the_number_of_concurrent_requests_is_limited_and_more_wait(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http, "UNDER_WAY_LIMIT", 2)
    may_answer = asyncio.Event()

    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        await may_answer.wait()
        return await as_json(request, message)

    async with line(Box(answer)) as one:
        one.post("a")
        assert not one.transport.congested
        one.post("b")
        assert one.transport.congested
        room = asyncio.create_task(one.transport.drained())
        await asyncio.sleep(0)
        assert not room.done()
        may_answer.set()
        await asyncio.wait_for(room, 5)
        await one.sink.until(lambda: not one.sink.awaited)


# --- headers, session, revision ---


async def test_the_session_id_is_sent_from_then_on_and_deleted_at_the_end():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        response = await as_json(request, message)
        response.headers["Mcp-Session-Id"] = f"session of {message['method']}"
        return response

    async def bye(request: web.Request, message: Any) -> web.StreamResponse:
        return web.Response(status=200)

    async with line(Box(answer, delete=bye)) as one:
        await one.ask("r1", "initialize")
        await one.ask("r2", "tools/list")
        await one.ask("r3", "tools/list")

    named = [headers.get("Mcp-Session-Id") for headers, _ in one.box.of("POST")]
    assert named == [None, "session of initialize", "session of initialize"]
    ((headers, _),) = one.box.of("DELETE")
    assert headers["Mcp-Session-Id"] == "session of initialize"


async def test_without_a_session_no_delete_is_sent():
    async with line(Box()) as one:
        await one.ask("r1", "initialize")

    assert one.box.of("DELETE") == []


@pytest.mark.parametrize("session", ["ü", "x" * 5000, "a\tb"], ids=["not ascii", "endless", "a tab"])
async def test_an_invalid_session_id_is_ignored(session: str):
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        response = await as_json(request, message)
        response.headers["Mcp-Session-Id"] = session
        return response

    async with line(Box(answer)) as one:
        await one.ask("r1", "initialize")
        assert await one.ask("r2") is None

    assert "Mcp-Session-Id" not in one.box.of("POST")[1][0]


async def test_a_404_within_a_session_is_a_lost_session():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        if message["method"] != "initialize":
            return web.Response(status=404)
        response = await as_json(request, message)
        response.headers["Mcp-Session-Id"] = "s"
        return response

    async with line(Box(answer)) as one:
        await one.ask("r1", "initialize")
        trouble = await one.ask("r2")

    assert trouble is not None
    assert (trouble.status, trouble.in_session, trouble.may_have_run) == (404, True, False)


@pytest.mark.parametrize(
    ("revision", "named"),
    [(LEGACY, LEGACY), ("2025-06-18", "2025-06-18"), (OLD, None), ("2024-11-05", None), (MODERN, None)],
)
async def test_for_which_revisions_the_transport_sends_the_version_header(revision: str, named: str | None):
    async with line(Box(), revision=revision) as one:
        await one.ask()

    assert one.box.of("POST")[0][0].get("MCP-Protocol-Version") == named


async def test_the_entrys_headers_are_sent_and_protocol_headers_take_precedence():
    given = {"X-Key": "k", "accept": "nonsense", "content-type": "nonsense", "mcp-session-id": "nonsense"}

    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        response = await as_json(request, message)
        response.headers["Mcp-Session-Id"] = "ours"
        return response

    async with line(Box(answer), headers=given) as one:
        await one.ask("r1", "initialize")
        await one.ask("r2")

    headers: Any = one.box.of("POST")[1][0]
    assert headers["X-Key"] == "k"
    assert headers.getall("Accept") == ["application/json, text/event-stream"]
    assert headers.getall("Content-Type") == ["application/json"]
    assert headers.getall("Mcp-Session-Id") == ["ours"]


async def test_no_request_overtakes_the_initialized_notification():
    may_answer = asyncio.Event()

    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        if message["method"] == "notifications/initialized":
            await may_answer.wait()
        return await as_json(request, message)

    async with line(Box(answer)) as one:
        await one.ask("r1", "initialize")
        one.post(None, "notifications/initialized")
        one.transport.negotiated(LEGACY)
        one.post("r2", "tools/list")
        one.post("r3", "tools/list")
        await settled(lambda: len(one.box.seen) == 2)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(one.box.seen) == 2
        may_answer.set()
        await one.sink.until(lambda: not one.sink.awaited)

    assert [message["method"] for _, message in one.box.of("POST")][:2] == [
        "initialize",
        "notifications/initialized",
    ]


async def test_an_initialized_notification_that_hangs_delays_requests_only_briefly(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(http, "INITIALIZED_SECONDS", 0.05)

    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        if message["method"] == "notifications/initialized":
            await asyncio.Event().wait()
        return await as_json(request, message)

    async with asyncio.timeout(5), line(Box(answer)) as one:
        one.post(None, "notifications/initialized")
        assert await one.ask("r1") is None


# --- cancelling ---


@pytest.mark.parametrize(("revision", "tells"), [(MODERN, True), (LEGACY, False), (None, False)])
async def test_a_cancellation_closes_the_post_and_only_in_the_modern_era_that_is_sufficient(
    revision: str | None, tells: bool
):
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        await stream(request, b": here\n\n")
        await asyncio.Event().wait()
        raise AssertionError

    async with asyncio.timeout(5), line(Box(answer), revision=revision) as one:
        one.post("r1")
        await settled(lambda: one.box.of("POST"))
        assert one.transport.abandon("r1") is tells
        await one.box.gone.wait()
        await settled(lambda: not one.transport.congested)

    assert one.sink.failures == []


async def test_cancelling_a_finished_request_has_no_effect():
    async with line(Box(), revision=MODERN) as one:
        await one.ask("r1")

        assert one.transport.abandon("r1")
        assert one.transport.abandon("never sent")


# --- redirects and credentials ---


def moving(location: str, status: int = 307) -> Answer:
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        if request.path == "/mcp":
            return web.Response(status=status, headers={"Location": location})
        return await as_json(request, message)

    return answer


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_within_the_origin_is_followed_and_remembered(status: int):
    async with line(Box(moving("/mcp/", status)), client_session_id="s") as one:
        assert await one.ask("r1") is None
        assert await one.ask("r2") is None

    assert one.box.paths == ["/mcp", "/mcp/", "/mcp/"]


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_change_the_method_is_not_followed(status: int):
    async with line(Box(moving("/mcp/", status))) as one:
        trouble = await one.ask("r1")

    assert trouble is not None
    assert trouble.status == status
    assert one.box.paths == ["/mcp"]


async def test_with_headers_of_the_entry_no_redirect_is_followed():
    async with line(Box(moving("/mcp/")), headers={"Authorization": "Bearer x"}) as one:
        trouble = await one.ask("r1")

    assert trouble is not None
    assert trouble.status == 307
    assert "not followed" in (trouble.hint or "")
    assert one.box.paths == ["/mcp"]


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:1/mcp",
        "https://127.0.0.1/mcp",
        "//other.example/mcp",
        "ftp:/x",
        "",
        "http://[x",
        "/mcp",
    ],
)
async def test_a_redirect_to_another_origin_is_not_followed(location: str):
    async with line(Box(moving(location))) as one:
        trouble = await one.ask("r1")

    assert trouble is not None
    assert trouble.status == 307
    assert one.box.paths == ["/mcp"]


async def test_a_user_name_and_password_in_a_redirect_are_not_used():
    box = Box()
    box._answers["POST"] = lambda request, message: moving(f"http://u:p@127.0.0.1:{box.port}/x")(
        request, message
    )
    async with line(box) as one:
        assert await one.ask("r1") is not None

    assert box.paths == ["/mcp"]


async def test_the_number_of_redirects_is_limited():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        return web.Response(status=307, headers={"Location": f"{request.path}x"})

    async with line(Box(answer)) as one:
        trouble = await one.ask("r1")

    assert trouble is not None
    assert trouble.status == 307
    assert len(one.box.paths) == http.REDIRECT_LIMIT + 1


class Keys:
    """Credentials that change when they are refused."""

    def __init__(self) -> None:
        self.renewals = 0

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.renewals}"}

    async def renew(self, challenge: Challenge) -> bool:
        self.renewals += 1
        return True


def guarded(good: str) -> Answer:
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        if request.headers["Authorization"] != good:
            return web.Response(status=401, headers={"WWW-Authenticate": "Bearer x"})
        return await as_json(request, message)

    return answer


async def test_credentials_are_renewed_once_after_a_401():
    keys = Keys()
    async with line(Box(guarded("Bearer 1")), credentials=keys) as one:
        assert await one.ask("r1") is None

    assert keys.renewals == 1
    assert len(one.box.seen) == 2


async def test_credentials_that_are_refused_twice_fail_the_request():
    keys = Keys()
    async with line(Box(guarded("never")), credentials=keys) as one:
        trouble = await one.ask("r1")

    assert trouble is not None
    assert (trouble.status, trouble.challenge) == (401, "Bearer x")
    assert keys.renewals == 1


async def test_credentials_that_cannot_be_obtained_fail_the_request():
    class Broken:
        async def headers(self) -> Mapping[str, str]:
            raise RuntimeError("the keychain is locked")

        async def renew(self, challenge: Challenge) -> bool:
            return False

    async with line(Box(), credentials=Broken()) as one:
        one.post("r1")
        await settled(lambda: not one.transport._posts)

        assert [request_id for request_id, _ in one.sink.failures] == ["r1"]
    assert one.box.seen == []


async def test_with_credentials_no_redirect_is_followed():
    async with line(Box(moving("/mcp/")), credentials=Keys()) as one:
        assert await one.ask("r1") is not None

    assert one.box.paths == ["/mcp"]


# --- taking a stream up again ---


def once(request: web.Request) -> str | None:
    return request.headers.get("Last-Event-ID")


async def test_a_broken_stream_is_resumed_where_it_ended_after_the_requested_time():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        return await stream(request, b"id: e1\nretry: 50\ndata: \n\n")

    async def resume(request: web.Request, message: Any) -> web.StreamResponse:
        if once(request) is None:
            return web.Response(status=405)
        return await stream(request, event(reply("r1", n=1), id="e2"))

    async with line(Box(answer, resume), revision=LEGACY) as one:
        assert await one.ask() is None

    resumed = [
        (headers, at)
        for (method, headers, _), at in zip(one.box.seen, one.box.times, strict=True)
        if method == "GET" and "Last-Event-ID" in headers
    ]
    posted = next(
        at for (method, _, _), at in zip(one.box.seen, one.box.times, strict=True) if method == "POST"
    )
    ((headers, at),) = resumed
    assert headers["Last-Event-ID"] == "e1"
    assert headers["Accept"] == "text/event-stream"
    assert headers["MCP-Protocol-Version"] == LEGACY
    assert "Content-Type" not in headers
    assert at - posted >= 0.045
    assert one.results[-1]["result"] == {"n": 1}


async def test_a_stream_is_resumed_as_often_as_it_brings_messages():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        return await stream(request, b"id: 0\nretry: 1\ndata: \n\n")

    async def resume(request: web.Request, message: Any) -> web.StreamResponse:
        last = once(request)
        if last is None:
            return web.Response(status=405)
        if last == "9":
            return await stream(request, event(reply("r1")))
        return await stream(request, f"id: {int(last) + 1}\ndata: \n\n".encode())

    async with line(Box(answer, resume), revision=LEGACY) as one:
        assert await one.ask() is None


@pytest.mark.parametrize("revision", [MODERN, None], ids=["modern", "not negotiated"])
async def test_outside_the_legacy_era_no_stream_is_resumed(revision: str | None):
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        return await stream(request, b"id: e1\nretry: 1\ndata: \n\n")

    async with line(Box(answer), revision=revision) as one:
        trouble = await one.ask()

    assert trouble is not None
    assert trouble.kind == "broken"
    assert one.box.of("GET") == []


async def test_without_an_event_id_no_stream_is_resumed():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        return await stream(request, b"retry: 1\ndata: {}\n\n")

    async with line(Box(answer), revision=LEGACY) as one:
        trouble = await one.ask()

    assert trouble is not None
    assert all("Last-Event-ID" not in headers for headers, _ in one.box.of("GET"))


async def test_a_stream_that_cannot_be_resumed_fails_the_request():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        return await stream(request, b"id: e1\nretry: 1\ndata: \n\n")

    async with line(Box(answer), revision=LEGACY) as one:
        trouble = await one.ask()

    assert trouble is not None
    assert trouble.kind == "broken"
    assert "HTTP 405" in trouble.cause


async def test_the_number_of_failed_resumptions_is_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http, "RETRY_SECONDS", 0.001)
    resumes = 0

    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        return await stream(request, b"id: e1\nretry: 1\ndata: \n\n")

    async def resume(request: web.Request, message: Any) -> web.StreamResponse:
        nonlocal resumes
        if once(request) is None:
            return web.Response(status=405)
        resumes += 1
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async with asyncio.timeout(5), line(Box(answer, resume), revision=LEGACY) as one:
        trouble = await one.ask()

    assert trouble is not None
    assert trouble.kind == "broken"
    # aiohttp repeats a GET by itself when the connection was gone before the answer began.
    assert http.RESUME_LIMIT <= resumes <= 2 * http.RESUME_LIMIT


# --- what a server says by itself ---


async def test_the_get_stream_of_a_legacy_server_is_read_and_reopened_after_an_end():
    async def speak(request: web.Request, message: Any) -> web.StreamResponse:
        return await stream(request, event(b'{"jsonrpc":"2.0","method":"n"}', id="e1", retry=1))

    async with line(Box(get=speak), revision=LEGACY) as one:
        await one.sink.until(lambda: len(one.sink.messages) >= 2)

    gets = one.box.of("GET")
    assert "Last-Event-ID" not in gets[0][0]
    assert gets[1][0]["Last-Event-ID"] == "e1"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405])
async def test_the_get_stream_of_a_server_without_one_is_requested_once(status: int):
    async def refuse(request: web.Request, message: Any) -> web.StreamResponse:
        return web.Response(status=status)

    async with line(Box(get=refuse), revision=LEGACY) as one:
        await settled(lambda: one.box.of("GET"))
        assert await one.ask() is None
        await settled(lambda: not [name for name in other_tasks() if "dragoman http" in name])

    assert len(one.box.of("GET")) == 1
    assert one.sink.failures == []


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_temporary_refusal_of_the_get_stream_is_retried(status: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http, "RETRY_SECONDS", 0.001)

    async def refuse(request: web.Request, message: Any) -> web.StreamResponse:
        return web.Response(status=status)

    async with line(Box(get=refuse), revision=LEGACY) as one:
        await settled(lambda: len(one.box.of("GET")) >= 3)

    assert one.sink.failures == []


async def test_no_get_stream_is_opened_to_a_modern_server():
    async with line(Box(), revision=MODERN) as one:
        assert await one.ask() is None

    assert one.box.of("GET") == []


async def with_session(request: web.Request, message: Any) -> web.StreamResponse:
    response = await as_json(request, message)
    response.headers["Mcp-Session-Id"] = "s"
    return response


async def test_a_404_for_a_get_stream_that_existed_is_a_lost_session():
    async def speak(request: web.Request, message: Any) -> web.StreamResponse:
        if len(box.of("GET")) == 1:
            return await stream(request, b"retry: 1\n\n")
        return web.Response(status=404)

    box = Box(with_session, speak)
    async with line(box) as one:
        await one.ask("r1", "initialize")
        one.transport.negotiated(LEGACY)
        await one.sink.until(lambda: one.sink.failures)

    ((request_id, trouble),) = one.sink.failures
    assert (request_id, trouble.status, trouble.in_session) == (None, 404, True)


async def test_a_404_for_a_get_stream_that_never_existed_is_not_a_lost_session():
    async def refuse(request: web.Request, message: Any) -> web.StreamResponse:
        return web.Response(status=404)

    async with line(Box(with_session, refuse)) as one:
        await one.ask("r1", "initialize")
        one.transport.negotiated(LEGACY)
        await settled(lambda: one.box.of("GET"))
        await settled(lambda: not [name for name in other_tasks() if "dragoman http" in name])
        assert await one.ask("r2") is None

    assert one.sink.failures == []


async def test_an_event_over_the_limit_does_not_end_the_get_stream(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(http, "RETRY_SECONDS", 0.001)

    async def speak(request: web.Request, message: Any) -> web.StreamResponse:
        if len(box.of("GET")) == 1:
            return await stream(request, event(b"x" * 200_000, retry=1))
        return await stream(request, event(b'{"jsonrpc":"2.0","method":"n"}'))

    box = Box(get=speak)
    async with line(box, revision=LEGACY) as one:
        await one.sink.until(lambda: one.sink.messages)


# --- the end ---


async def test_closing_reports_no_failure_and_nothing_can_be_sent_afterwards():
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with line(Box(answer)) as one:
        one.post("r1")
        await one.box.came.wait()
        await one.transport.close()
        await one.transport.close()
        with pytest.raises(ConnectionError):
            one.post("r2")

    assert one.sink.failures == []
    assert one.sink.ends == []


async def test_the_delete_request_at_close_has_a_time_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http, "CLOSE_SECONDS", 0.05)

    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        response = await as_json(request, message)
        response.headers["Mcp-Session-Id"] = "s"
        return response

    async def hang(request: web.Request, message: Any) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with line(Box(answer, delete=hang)) as one:
        await one.ask("r1", "initialize")
        async with asyncio.timeout(2):
            await one.transport.close()

    assert len(one.box.of("DELETE")) == 1


async def test_closing_leaves_no_task_and_no_file_open():
    async def speak(request: web.Request, message: Any) -> web.StreamResponse:
        await stream(request, b": here\n\n")
        await asyncio.Event().wait()
        raise AssertionError

    before = open_files()
    async with line(Box(get=speak), revision=LEGACY) as one:
        await asyncio.gather(*(one.ask(f"r{number}") for number in range(20)))
        await settled(lambda: one.box.of("GET"))
    await settled(lambda: open_files() <= before and not other_tasks())


async def test_a_request_sent_before_it_is_open_is_refused():
    transport = HttpTransport("box", Network("http://127.0.0.1:1/"), limit_bytes=1, request_seconds=1)
    with pytest.raises(ConnectionError):
        transport.send(b"{}")
    await transport.close()
