"""Requests end, one way or another, and giving one up disturbs no other. Over a transport made of lists."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.connections.session import OpenCall, Session
from dragoman.errors import (
    CallError,
    CallTimeout,
    ConnectionLost,
    HttpError,
    InvalidArguments,
    RemoteError,
)
from dragoman.interaction import RelatedCall
from dragoman.transports.base import About, Details, Sink, TransportFailure
from dragoman.wire.client.legacy import LegacyDriver
from dragoman.wire.client.modern import ModernDriver
from dragoman.wire.messages import MessageId

CLIENT = {"name": "test", "version": "1"}


class Wire:
    """A transport that keeps what is sent, and the observer that keeps what is told."""

    def __init__(self, *, wants_about: bool = False) -> None:
        self.wants_about = self.sends_message_headers = wants_about
        self.tells_by_closing = False
        self.abandoned: list[str] = []
        self.revision: str | None = None
        self.abouts: list[About | None] = []
        self.sent: list[dict[str, Any]] = []
        self.told: list[tuple[str, ...]] = []
        self.sink: Sink | None = None
        self.is_gone = False
        self.room = asyncio.Event()
        self.room.set()

    async def open(self, sink: Sink) -> None:
        self.sink = sink

    def send(self, message: bytes, about: About | None = None) -> None:
        if self.is_gone:
            raise ConnectionError("the process is gone")
        self.sent.append(json.loads(message))
        self.abouts.append(about)

    def abandon(self, request_id: str) -> bool:
        self.abandoned.append(request_id)
        return self.tells_by_closing

    def negotiated(self, revision: str) -> None:
        self.revision = revision

    @property
    def congested(self) -> bool:
        return not self.room.is_set()

    async def drained(self) -> None:
        await self.room.wait()

    async def close(self) -> None:
        self.told.append(("closed",))

    def details(self) -> Details:
        return Details()

    def notified(self, method: str, params: object) -> None:
        self.told.append(("notified", method))

    def logged(self, level: str, text: str) -> None:
        self.told.append(("logged", level, text))

    def asked(
        self,
        session: Session,
        request_id: MessageId,
        method: str,
        params: object,
        calls: Mapping[int, OpenCall],
    ) -> None:
        self.told.append(("asked", str(request_id), method, *(call.call.name for call in calls.values())))

    def call_ended(self, request_id: int) -> None:
        self.told.append(("call ended",))

    def ended(self, session: Session, cause: str, how: str) -> None:
        self.told.append(("ended", cause, how))

    @property
    def methods(self) -> list[str]:
        return [message.get("method", "(reply)") for message in self.sent]


@pytest.fixture
async def wire() -> Wire:
    return Wire()


@pytest.fixture
async def session(wire: Wire) -> Session:
    session = Session(
        "box",
        wire,
        LegacyDriver("2025-11-25", CLIENT, {}),
        wire,
        limit_bytes=1000,
        unrequested_per_second=100,
    )
    await session.open()
    return session


async def started(session: Session, **more: Any) -> asyncio.Task[Any]:
    task = asyncio.create_task(session.request("x", {}, **{"timeout_seconds": 30, **more}))
    await asyncio.sleep(0)
    return task


def answer(wire: Wire, number: int = 1, **parts: object) -> None:
    """Answers the first, second … request that was sent."""
    assert wire.sink is not None
    request_id = [message["id"] for message in wire.sent if "id" in message][number - 1]
    wire.sink.received(json.dumps({"jsonrpc": "2.0", "id": request_id, **(parts or {"result": {}})}).encode())


async def test_a_request_returns_the_result(session: Session, wire: Wire):
    task = await started(session)
    answer(wire, result=[1])

    assert bytes(await task) == b"[1]"
    assert wire.sent == [{"jsonrpc": "2.0", "id": wire.sent[0]["id"], "method": "x", "params": {}}]


async def test_an_error_is_raised_as_the_server_sent_it(session: Session, wire: Wire):
    task = await started(session)
    answer(wire, error={"code": 7, "message": "no"})

    with pytest.raises(RemoteError, match="box answered error 7: no"):
        await task


async def test_a_request_that_takes_too_long_times_out_and_is_cancelled_at_the_server(
    session: Session, wire: Wire
):
    slow, other = await started(session, timeout_seconds=0.01), await started(session)
    with pytest.raises(CallTimeout):
        await slow

    assert wire.sent[-1]["method"] == "notifications/cancelled"
    assert wire.sent[-1]["params"]["requestId"] == wire.sent[0]["id"]
    answer(wire)  # too late: ignored
    answer(wire, 2)
    await other
    assert session.ignored == {"reply to no pending request": 1}


async def test_a_cancelled_request_does_not_affect_others_and_is_cancelled_at_the_server(
    session: Session, wire: Wire
):
    given_up, other = await started(session), await started(session)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up

    assert wire.methods == ["x", "x", "notifications/cancelled"]
    answer(wire, 2)
    await other


async def test_a_timeout_without_send_cancelled_sends_no_notification(session: Session, wire: Wire):
    task = await started(session, timeout_seconds=0.01, send_cancelled=False)
    with pytest.raises(CallTimeout):
        await task

    assert wire.methods == ["x"]


async def test_a_lost_connection_fails_pending_and_later_requests(session: Session, wire: Wire):
    one, other = await started(session), await started(session)
    session.lost("it exited with code 3")

    for task in (one, other):
        with pytest.raises(ConnectionLost, match="it exited with code 3") as caught:
            await task
        assert caught.value.may_have_run
    with pytest.raises(ConnectionLost) as caught:
        await session.request("x", timeout_seconds=1)
    assert not caught.value.may_have_run
    assert wire.told == [("ended", "it exited with code 3", "lost")]


async def test_a_closed_connection_states_that_the_request_was_not_sent(session: Session, wire: Wire):
    wire.is_gone = True
    task = await started(session)
    session.lost("it exited with code 3")

    with pytest.raises(ConnectionLost, match="it exited with code 3") as caught:
        await task
    assert not caught.value.may_have_run


async def test_closing_fails_pending_requests_and_closes_the_transport(session: Session, wire: Wire):
    task = await started(session)
    await session.close()
    await session.close()

    with pytest.raises(ConnectionLost, match="closed"):
        await task
    assert set(wire.told) == {("closed",)}


async def test_a_request_waits_for_a_congested_transport_at_most_until_its_deadline(
    session: Session, wire: Wire
):
    wire.room.clear()
    patient, hasty = await started(session), await started(session, timeout_seconds=0.01)
    with pytest.raises(CallTimeout):
        await hasty
    assert wire.sent == []  # nor a cancellation of what was never sent

    wire.room.set()
    async with asyncio.timeout(5):
        while not wire.sent:
            await asyncio.sleep(0)
    answer(wire)
    await patient
    assert wire.methods == ["x"]


async def test_a_request_cancelled_while_the_transport_is_congested_is_never_sent(
    session: Session, wire: Wire
):
    wire.room.clear()
    task = await started(session)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    wire.room.set()
    await asyncio.sleep(0)

    assert wire.sent == []


@pytest.mark.parametrize("has_room", [True, False])
async def test_a_request_that_is_denied_before_sending_is_not_sent_with_or_without_congestion(
    session: Session, wire: Wire, has_room: bool
):
    def refuse() -> None:
        raise LookupError("the tool has changed")

    if not has_room:
        wire.room.clear()
    task = await started(session, before_send=refuse)
    wire.room.set()
    with pytest.raises(LookupError):
        await task

    assert wire.sent == []


def circle() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(object(), id="an object"),
        pytest.param("\ud83d", id="half a surrogate pair"),
        pytest.param(circle(), id="a list that contains itself"),
        pytest.param({(1, 2): 3}, id="a tuple as key"),
    ],
)
async def test_arguments_that_cannot_be_written_as_json_are_invalid_and_nothing_is_sent(
    session: Session, wire: Wire, value: Any
):
    params = {"name": "open", "arguments": {"x": value}}
    with pytest.raises(InvalidArguments) as refused:
        await session.request("tools/call", params, timeout_seconds=1)

    assert refused.value.tool == "open"
    assert wire.sent == []


async def test_a_request_of_a_legacy_server_reaches_the_observer_and_the_answer_reaches_the_server(
    session: Session, wire: Wire
):
    session.received(b'{"jsonrpc":"2.0","id":5,"method":"ping"}')
    session.answer(b'{"jsonrpc":"2.0","id":5,"result":{}}')

    assert wire.told == [("asked", "5", "ping")]
    assert wire.sent == [{"jsonrpc": "2.0", "id": 5, "result": {}}]


ASKS = b'{"jsonrpc":"2.0","id":5,"method":"elicitation/create"}'
CALLS = {name: RelatedCall("tools/call", name) for name in ("one", "two")}


@pytest.mark.requirement("ASK-3")
async def test_a_server_request_belongs_to_the_call_of_its_stream(session: Session, wire: Wire):
    tasks = [await started(session, call=call) for call in CALLS.values()]
    tasks.append(await started(session))
    numbers = [message["id"] for message in wire.sent]
    for number in numbers:
        session.received_on(number, ASKS)

    asked = ("asked", "5", "elicitation/create")
    assert wire.told == [(*asked, "one"), (*asked, "two"), asked]
    for task in tasks:
        task.cancel()


async def test_a_server_request_on_the_common_stream_belongs_to_one_of_the_running_calls(
    session: Session, wire: Wire
):
    task = await started(session, call=CALLS["one"])
    session.received(ASKS)
    other = await started(session, call=CALLS["two"])
    session.received(ASKS)
    answer(wire, 1)
    await task
    session.received(ASKS)
    other.cancel()
    await asyncio.wait([other])
    session.received(ASKS)

    assert [what[3:] for what in wire.told if what[0] == "asked"] == [("one",), ("one", "two"), ("two",), ()]
    assert wire.told.count(("call ended",)) == 2


async def test_a_request_of_a_modern_server_is_not_answered_and_is_recorded(session: Session, wire: Wire):
    session.use(ModernDriver("2026-07-28", CLIENT, {}))
    session.received(b'{"jsonrpc":"2.0","id":5,"method":"ping"}')

    assert wire.sent == []
    ((kind, level, text),) = wire.told
    assert (kind, level) == ("logged", "warning")
    assert "ping" in text


async def test_a_notification_reaches_the_observer(session: Session, wire: Wire):
    session.received(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')

    assert wire.told == [("notified", "notifications/tools/list_changed")]


# --- where each request travels by itself ---


@pytest.fixture
async def web() -> Wire:
    return Wire(wants_about=True)


@pytest.fixture
async def remote(web: Wire) -> Session:
    session = Session(
        "box", web, LegacyDriver("2025-11-25", CLIENT, {}), web, limit_bytes=1000, unrequested_per_second=100
    )
    await session.open()
    return session


def fail(web: Wire, trouble: TransportFailure, number: int = 1) -> None:
    """The first, second … request that was sent comes to nothing."""
    assert web.sink is not None
    web.sink.failed([message["id"] for message in web.sent if "id" in message][number - 1], trouble)


async def test_a_transport_with_wants_about_gets_details_of_each_request(remote: Session, web: Wire):
    task = await started(remote, timeout_seconds=7, headers={"X": "1"}, is_long_lived=True)
    answer(web)
    await task
    remote.notify("notifications/x")

    assert web.abouts == [About(web.sent[0]["id"], "x", {"X": "1"}, 7, True), About(method="notifications/x")]


async def test_in_the_modern_era_method_and_name_are_repeated_in_headers(remote: Session, web: Wire):
    remote.use(ModernDriver("2026-07-28", CLIENT, {}))
    task = asyncio.create_task(
        remote.request("tools/call", {"name": "open"}, timeout_seconds=7, headers={"Mcp-Param-A": "1"})
    )
    await asyncio.sleep(0)
    answer(web)
    await task

    assert web.abouts[0] is not None
    assert web.abouts[0].headers == {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "open",
        "Mcp-Param-A": "1",
    }


async def test_arguments_are_mirrored_only_in_the_modern_era_over_transports_with_headers(
    session: Session, remote: Session
):
    assert not remote.mirrors_arguments
    for each in (session, remote):
        each.use(ModernDriver("2026-07-28", CLIENT, {}))

    assert (session.mirrors_arguments, remote.mirrors_arguments) == (False, True)
    assert (session.fails_singly, remote.fails_singly) == (False, True)


async def test_the_transport_learns_the_revision(remote: Session, web: Wire):
    remote.handshake_done()

    assert web.revision == "2025-11-25"


async def test_a_failure_of_one_request_is_reported_for_that_request_only(remote: Session, web: Wire):
    one, other = await started(remote), await started(remote)
    fail(web, TransportFailure("status", "HTTP 500", status=500))

    with pytest.raises(HttpError, match="HTTP 500"):
        await one
    answer(web, 2)
    await other
    assert remote.lost_cause is None
    assert web.told == []


async def test_a_notification_that_was_refused_is_recorded(remote: Session, web: Wire):
    remote.failed(None, TransportFailure("status", "HTTP 500", status=500))

    assert web.told == [("logged", "warning", "a message was not taken: HTTP 500")]


@pytest.mark.requirement("LIF-6")
async def test_the_third_consecutive_terminal_error_ends_the_connection_once(remote: Session, web: Wire):
    for number in (1, 2, 3, 4):
        task = asyncio.create_task(remote.request("x", {}, timeout_seconds=30))
        await asyncio.sleep(0)
        if number < 4:
            fail(web, TransportFailure("broken", "reset"), number)
        with pytest.raises(ConnectionLost) as caught:
            await task
        assert caught.value.may_have_run is (number < 4)

    assert web.told == [("ended", "reset", "lost")]


@pytest.mark.requirement("LIF-6")
async def test_a_success_in_between_keeps_the_connection(remote: Session, web: Wire):
    for number in range(1, 10):
        task = await started(remote)
        if number % 3:
            fail(web, TransportFailure("broken", "reset"), number)
            with pytest.raises(ConnectionLost):
                await task
        else:
            answer(web, number)
            await task

    assert web.told == []


@pytest.mark.requirement("LIF-6")
@pytest.mark.parametrize(
    ("trouble", "end"),
    [
        (TransportFailure("unreachable", "refused", may_have_run=False), ("ended", "refused", "lost")),
        (
            TransportFailure("status", "HTTP 404", status=404, in_session=True, may_have_run=False),
            ("ended", "its session has ended", "session"),
        ),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_failures_that_end_the_connection_at_once(
    remote: Session, web: Wire, trouble: TransportFailure, end: tuple[str, ...]
):
    one, other = await started(remote), await started(remote)
    fail(web, trouble)
    with pytest.raises(CallError):
        await one

    assert web.told == [end]
    answer(web, 2)  # what is on its way may still arrive
    await other


@pytest.mark.requirement("LIF-7")
async def test_a_lost_session_reported_in_a_reply_is_detected_and_the_call_did_not_run(
    remote: Session, web: Wire
):
    remote.handshake_done()
    task = await started(remote)
    answer(web, error={"code": -32600, "message": "Session not found"})

    with pytest.raises(ConnectionLost, match="session has ended") as caught:
        await task
    assert not caught.value.may_have_run
    assert web.told == [("ended", "its session has ended", "session")]


@pytest.mark.requirement("LIF-7")
@pytest.mark.parametrize(
    "error",
    [
        {"code": -32000, "message": "Session not found"},  # a tool's own words
        {"code": -32001, "message": "no such row"},
        {"code": -32001, "message": "Session not found"},  # of the tool's own, perhaps after it ran
        {"code": -32601, "message": "Session not found"},
    ],
    ids=str,
)
async def test_an_error_that_resembles_a_lost_session_is_an_error_of_the_server(
    remote: Session, web: Wire, error: dict[str, Any]
):
    task = await started(remote)
    answer(web, error=error)

    with pytest.raises(RemoteError):
        await task
    assert web.told == []


async def test_over_stdio_no_session_can_be_lost(session: Session, wire: Wire):
    task = await started(session)
    answer(wire, error={"code": -32001, "message": "Session not found"})

    with pytest.raises(RemoteError):
        await task
    assert wire.told == []


async def test_a_cancellation_closes_the_request_where_the_protocol_defines_that(remote: Session, web: Wire):
    web.tells_by_closing = True
    task = await started(remote)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert web.abandoned == [web.sent[0]["id"]]
    assert web.methods == ["x"]


async def test_a_cancellation_is_sent_as_a_notification_where_closing_has_no_meaning(
    remote: Session, web: Wire
):
    task = await started(remote, timeout_seconds=0.01)
    with pytest.raises(CallTimeout):
        await task

    assert web.abandoned == [web.sent[0]["id"]]
    assert web.methods == ["x", "notifications/cancelled"]


async def test_waiting_for_idle_ends_with_the_last_reply_or_the_time_limit(remote: Session, web: Wire):
    async with asyncio.timeout(5):
        await remote.wait_until_idle(60)
        task = await started(remote)
        await remote.wait_until_idle(0.01)
        quiet = asyncio.create_task(remote.wait_until_idle(60))
        await asyncio.sleep(0)
        assert not quiet.done()
        answer(web)
        await quiet
        await task


async def test_a_session_is_idle_only_without_running_requests(remote: Session, web: Wire):
    async with asyncio.timeout(5):
        while remote.idle_seconds < 0.002:
            await asyncio.sleep(0)
    task = await started(remote)
    assert remote.idle_seconds == 0  # it waits for a reply
    assert remote.idle_seconds == 0
    answer(web)
    await task
    since = asyncio.get_running_loop().time()
    async with asyncio.timeout(5):
        while (idle := remote.idle_seconds) < 0.002:
            await asyncio.sleep(0)
    assert idle <= asyncio.get_running_loop().time() - since + 0.001, (
        "counted from the reply, not from a look"
    )


async def test_a_request_cancelled_at_the_moment_of_its_time_limit_is_cancelled_at_the_server(
    session: Session, wire: Wire
):
    task = await started(session, timeout_seconds=0.01)
    request_id = wire.sent[0]["id"]
    session._expired(request_id)  # pyright: ignore[reportPrivateUsage]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert wire.sent[1]["method"] == "notifications/cancelled"
    assert wire.sent[1]["params"]["requestId"] == request_id
