"""Requests end, one way or another, and giving one up disturbs no other. Over a transport made of lists."""

import asyncio
import json
from typing import Any

import pytest

from dragoman.connections.session import Session
from dragoman.errors import CallTimeout, ConnectionLost, RemoteError
from dragoman.transports.base import Details, Sink
from dragoman.wire.legacy import LegacyDriver
from dragoman.wire.modern import ModernDriver

CLIENT = {"name": "test", "version": "1"}


class Wire:
    """A transport that keeps what is sent, and the observer that keeps what is told."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.told: list[tuple[str, ...]] = []
        self.sink: Sink | None = None
        self.is_gone = False
        self.room = asyncio.Event()
        self.room.set()

    async def open(self, sink: Sink) -> None:
        self.sink = sink

    def send(self, message: bytes) -> None:
        if self.is_gone:
            raise ConnectionError("the process is gone")
        self.sent.append(json.loads(message))

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

    def ended(self, cause: str) -> None:
        self.told.append(("ended", cause))

    @property
    def methods(self) -> list[str]:
        return [message.get("method", "(reply)") for message in self.sent]


@pytest.fixture
async def wire() -> Wire:
    return Wire()


@pytest.fixture
async def session(wire: Wire) -> Session:
    session = Session("box", wire, LegacyDriver("2025-11-25", CLIENT, {}), wire, limit_bytes=1000)
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


async def test_a_request_returns_what_was_answered(session: Session, wire: Wire):
    task = await started(session)
    answer(wire, result=[1])

    assert bytes(await task) == b"[1]"
    assert wire.sent == [{"jsonrpc": "2.0", "id": wire.sent[0]["id"], "method": "x", "params": {}}]


async def test_an_error_is_raised_as_the_server_put_it(session: Session, wire: Wire):
    task = await started(session)
    answer(wire, error={"code": 7, "message": "no"})

    with pytest.raises(RemoteError, match="box answered error 7: no"):
        await task


async def test_a_request_that_takes_too_long_times_out_and_the_server_is_told(session: Session, wire: Wire):
    slow, other = await started(session, timeout_seconds=0.01), await started(session)
    with pytest.raises(CallTimeout):
        await slow

    assert wire.sent[-1]["method"] == "notifications/cancelled"
    assert wire.sent[-1]["params"]["requestId"] == wire.sent[0]["id"]
    answer(wire)  # too late: ignored
    answer(wire, 2)
    await other
    assert session.ignored == {"reply nobody waits for": 1}


async def test_a_caller_that_gives_up_disturbs_no_other_and_the_server_is_told(session: Session, wire: Wire):
    given_up, other = await started(session), await started(session)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up

    assert wire.methods == ["x", "x", "notifications/cancelled"]
    answer(wire, 2)
    await other


async def test_without_courtesy_nothing_is_said_of_giving_up(session: Session, wire: Wire):
    task = await started(session, timeout_seconds=0.01, courtesy_cancel=False)
    with pytest.raises(CallTimeout):
        await task

    assert wire.methods == ["x"]


async def test_a_lost_link_fails_all_that_wait_and_all_that_come(session: Session, wire: Wire):
    one, other = await started(session), await started(session)
    session.lost("it exited with code 3")

    for task in (one, other):
        with pytest.raises(ConnectionLost, match="it exited with code 3") as caught:
            await task
        assert caught.value.may_have_run
    with pytest.raises(ConnectionLost) as caught:
        await session.request("x", timeout_seconds=1)
    assert not caught.value.may_have_run
    assert wire.told == [("ended", "it exited with code 3")]


async def test_a_link_that_takes_nothing_more_says_that_the_request_was_not_sent(
    session: Session, wire: Wire
):
    wire.is_gone = True
    task = await started(session)
    session.lost("it exited with code 3")

    with pytest.raises(ConnectionLost, match="it exited with code 3") as caught:
        await task
    assert not caught.value.may_have_run


async def test_closing_fails_what_waits_and_closes_the_transport(session: Session, wire: Wire):
    task = await started(session)
    await session.close()
    await session.close()

    with pytest.raises(ConnectionLost, match="closed"):
        await task
    assert set(wire.told) == {("closed",)}


async def test_a_request_waits_for_room_but_not_beyond_its_deadline(session: Session, wire: Wire):
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


async def test_a_request_given_up_while_waiting_for_room_is_never_sent(session: Session, wire: Wire):
    wire.room.clear()
    task = await started(session)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    wire.room.set()
    await asyncio.sleep(0)

    assert wire.sent == []


async def test_a_legacy_server_that_asks_is_answered(session: Session, wire: Wire):
    session.received(b'{"jsonrpc":"2.0","id":5,"method":"ping"}')
    session.received(b'{"jsonrpc":"2.0","id":6,"method":"roots/list"}')

    assert wire.sent[0] == {"jsonrpc": "2.0", "id": 5, "result": {}}
    assert wire.sent[1]["error"]["code"] == -32601


async def test_a_modern_server_that_asks_is_not_answered_and_it_is_noted(session: Session, wire: Wire):
    session.use(ModernDriver("2026-07-28", CLIENT, {}))
    session.received(b'{"jsonrpc":"2.0","id":5,"method":"ping"}')

    assert wire.sent == []
    ((kind, level, text),) = wire.told
    assert (kind, level) == ("logged", "warning")
    assert "ping" in text


async def test_a_notification_reaches_the_observer(session: Session, wire: Wire):
    session.received(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')

    assert wire.told == [("notified", "notifications/tools/list_changed")]
