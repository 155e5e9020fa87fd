"""One server's live link: what is wanted of it, how it comes back, and when it is left alone."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from msgspec import Raw

from dragoman import events
from dragoman.connections.connect_limiter import ConnectLimiter
from dragoman.connections.connection import Connection, ConnectionHandlers, HeldBack
from dragoman.connections.eras import EraMemory
from dragoman.connections.server_messages import QUESTIONS_LIMIT
from dragoman.connections.session import Session
from dragoman.connections.state import Disable, Hold
from dragoman.connections.target import ConnectionContext, ConnectionTarget
from dragoman.errors import (
    CallTimeout,
    ConnectError,
    ConnectionLost,
    NotConnected,
    SignInNeeded,
    StartFailed,
    Unreachable,
)
from dragoman.interaction import FormAnswer, FormElicitation, RelatedCall
from dragoman.settings import Settings
from dragoman.testing import FakeClock
from dragoman.transport_types import Place
from dragoman.transports.base import About, Details, Sink
from tests.unit.fakes import requests_answered_by

SETTINGS = {
    "DRAGOMAN_RECONNECT_ATTEMPTS": 3,
    "DRAGOMAN_RECONNECT_WAIT_MS": 1,
    "DRAGOMAN_RECONNECT_LONGEST_WAIT_MS": 2,
    "MCP_TIMEOUT": 5_000,
}


class Far:
    """A transport to a legacy server that answers at once, unless it is told to refuse."""

    wants_about = False
    sends_message_headers = False
    congested = False

    def __init__(self, refusal: Exception | None = None, *, hangs: bool = False) -> None:
        self._disabled_by = refusal
        self._hangs = hangs
        self.sink: Sink | None = None
        self.sent: list[dict[str, Any]] = []
        self.is_closed = False

    async def open(self, sink: Sink) -> None:
        if self._hangs:
            await asyncio.Event().wait()
        if self._disabled_by is not None:
            raise self._disabled_by
        self.sink = sink

    def send(self, message: bytes, about: About | None = None) -> None:
        asked = json.loads(message)
        self.sent.append(asked)
        if asked.get("method") == "initialize":
            self.say(id=asked["id"], result={"protocolVersion": "2025-11-25", "capabilities": {}})
        elif asked.get("method") == "ping":
            self.say(id=asked["id"], result={})

    def say(self, **message: Any) -> None:
        assert self.sink is not None
        self.sink.received(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def die(self, cause: str = "it exited with code 3") -> None:
        assert self.sink is not None
        self.sink.lost(cause)

    async def drained(self) -> None:
        return

    def abandon(self, request_id: str) -> bool:
        return False

    def negotiated(self, revision: str) -> None:
        return

    async def close(self, *, graceful: bool = False) -> None:
        self.is_closed = True

    def details(self) -> Details:
        return Details(exit_code=3, stderr_tail="last words")


class Bench:
    """A connection, the far ends it was given one after the other, and what it told."""

    def __init__(self) -> None:
        self.made: list[Far] = []
        self.next: Callable[[], Far] = Far
        self.bus = events.EventBus()
        self.heard = self.bus.listen()
        self.connections: list[Connection] = []
        self.prepared = 0

    def connection(
        self,
        *,
        place: Place = "local",
        settings: dict[str, int] | None = None,
        held: HeldBack | None = None,
        forms: Any = None,
        pages: Any = None,
        **more: Any,
    ) -> Connection:
        clock = FakeClock()
        context = ConnectionContext(
            Settings({**SETTINGS, **(settings or {})}, {}),
            clock,
            self.bus,
            EraMemory(clock),
            {"name": "test", "version": "1"},
            ConnectLimiter(local=3, remote=3),
        )
        target = ConnectionTarget(make_transport=self._make, protocol="legacy", place=place, **more)
        requests = requests_answered_by(forms, pages)
        handlers = ConnectionHandlers(self._prepare, lambda session, method, params: None, requests)
        made = Connection("box", target, context, handlers, held)
        self.connections.append(made)
        return made

    def _make(self) -> Far:
        far = self.next()
        self.made.append(far)
        return far

    async def _prepare(self, session: Session, seconds: float) -> None:
        assert 0 < seconds <= 5
        self.prepared += 1

    async def connected(self, **more: Any) -> Connection:
        connection = self.connection(**more)
        connection.start()
        async with asyncio.timeout(5):
            await connection.settled()
        assert connection.state.status == "connected"
        return connection


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


def lives_no_more() -> bool:
    """Whether nothing is under way that would connect by itself."""
    return all(not task.get_name().startswith("dragoman life") for task in asyncio.all_tasks())


@pytest.fixture
async def bench() -> AsyncGenerator[Bench]:
    bench = Bench()
    yield bench
    async with asyncio.timeout(5):
        for connection in bench.connections:
            await connection.close()
    assert all(far.is_closed or far.sink is None for far in bench.made)


# --- connecting ---


async def test_it_is_connected_once_it_is_prepared(bench: Bench):
    connection = await bench.connected()

    assert bench.prepared == 1
    assert connection.session() is not None
    assert connection.error is None
    assert connection.handshake_result is not None


@pytest.mark.requirement("LIF-4")
async def test_starting_twice_is_starting_once(bench: Bench):
    connection = bench.connection()
    connection.start()
    connection.start()
    await connection.settled()
    connection.start()

    assert len(bench.made) == 1


@pytest.mark.parametrize("held", [Hold("waits for approval"), Disable("not admitted")], ids=str)
async def test_a_server_that_may_not_start_is_never_started(bench: Bench, held: Hold | Disable):
    connection = bench.connection(held=HeldBack(held))
    for want in (connection.start, connection.enable, connection.reconnect, connection.disable):
        want()
    await connection.settled()
    with pytest.raises(NotConnected):
        await connection.wait_for_session(0.01)

    assert bench.made == []
    assert connection.is_held
    assert connection.state.reason == held.reason


@pytest.mark.requirement("LIF-3")
async def test_a_transport_that_does_not_open_in_time_is_a_failure(bench: Bench):
    bench.next = lambda: Far(hangs=True)
    connection = bench.connection(settings={"MCP_TIMEOUT": 20})
    connection.start()
    async with asyncio.timeout(5):
        await connection.settled()

    assert connection.state.status == "failed"
    assert "0.02 s" in (connection.state.reason or "")
    assert isinstance(connection.error, ConnectError)
    assert connection.error.hint


async def test_a_local_server_that_never_connected_is_not_retried(bench: Bench):
    bench.next = lambda: Far(StartFailed("box", "start", "no"))
    connection = bench.connection()
    connection.start()
    await connection.settled()
    await until(lives_no_more)

    assert len(bench.made) == 1
    assert connection.state.status == "failed"


@pytest.mark.requirement("LIF-5")
async def test_a_remote_server_that_is_unreachable_at_first_is_retried(bench: Bench):
    bench.next = lambda: Far() if len(bench.made) == 2 else Far(Unreachable("box", "connect", "refused"))
    connection = bench.connection(place="remote")
    connection.start()
    await connection.settled()
    assert connection.state.status == "failed"  # a host that starts is not kept waiting
    await until(lambda: connection.state.status == "connected")

    assert len(bench.made) == 3


async def test_a_server_that_needs_authentication_is_not_retried(bench: Bench):
    bench.next = lambda: Far(SignInNeeded("box", "connect", "HTTP 401", status=401))
    connection = bench.connection(place="remote")
    connection.start()
    await connection.settled()
    await until(lives_no_more)

    assert connection.state.status == "needs-auth"
    assert len(bench.made) == 1


async def test_an_unexpected_exception_fails_this_server_only_and_is_reported(bench: Bench):
    bench.next = lambda: Far(RuntimeError("oops"))
    connection = bench.connection()
    connection.start()
    await connection.settled()

    assert connection.state.status == "failed"
    assert "RuntimeError: oops" in (connection.state.reason or "")


# --- coming back ---


@pytest.mark.requirement("LIF-5")
async def test_a_lost_connection_is_reconnected_automatically(bench: Bench):
    connection = await bench.connected()
    bench.made[0].die()
    assert (connection.state.status, connection.state.phase) == ("pending", "reconnecting")
    assert connection.session() is None
    assert connection.offers_tools
    await until(lambda: connection.state.status == "connected")

    assert len(bench.made) == 2
    assert bench.made[0].is_closed


@pytest.mark.requirement("LIF-5")
async def test_a_call_during_the_reconnect_waits_for_it(bench: Bench):
    connection = await bench.connected()
    bench.made[0].die()
    async with asyncio.timeout(5):
        session = await connection.wait_for_session(60)

    assert session is connection.session()


async def test_a_call_during_the_reconnect_waits_at_most_its_time_limit(bench: Bench):
    connection = await bench.connected()
    bench.next = lambda: Far(hangs=True)
    bench.made[0].die()
    async with asyncio.timeout(5):
        with pytest.raises(NotConnected):
            await connection.wait_for_session(0.02)


@pytest.mark.requirement("LIF-5")
async def test_a_server_that_does_not_reconnect_fails_with_the_last_reason(bench: Bench):
    connection = await bench.connected()
    bench.next = lambda: Far(StartFailed("box", "start", "gone for good"))
    bench.made[0].die()
    await until(lambda: connection.state.status == "failed")

    assert len(bench.made) == 1 + 3
    assert "gone for good" in (connection.state.reason or "")
    with pytest.raises(NotConnected, match="gone for good"):
        await connection.wait_for_session(60)


@pytest.mark.requirement("LIF-5")
async def test_a_server_that_exits_right_after_each_start_is_soon_not_started_again(bench: Bench):
    connection = await bench.connected()
    while connection.state.status != "failed":
        assert len(bench.made) < 20
        bench.made[-1].die()
        await until(lambda: connection.state.status in ("connected", "failed"))

    assert len(bench.made) == 1 + 3


async def test_after_a_failure_a_manual_connect_has_all_attempts_again(bench: Bench):
    connection = await bench.connected()
    bench.next = lambda: Far(StartFailed("box", "start", "no"))
    bench.made[0].die()
    await until(lambda: connection.state.status == "failed")
    bench.next = Far
    connection.reconnect()
    await connection.settled()

    assert connection.state.status == "connected"
    bench.made[-1].die()
    await until(lambda: connection.state.status == "connected")


# --- what is wanted ---


@pytest.mark.requirement("LIF-9")
async def test_the_last_word_counts(bench: Bench):
    connection = await bench.connected()
    for _ in range(20):
        connection.disable()
        connection.enable()
        connection.reconnect()
    connection.disable()
    await connection.settled()
    assert connection.state.status == "disabled"
    for _ in range(20):
        connection.enable()
        connection.disable()
    connection.enable()
    await connection.settled()

    assert connection.state.status == "connected"
    assert sum(not far.is_closed for far in bench.made) == 1


@pytest.mark.requirement("LIF-9")
async def test_rapid_commands_end_in_the_last_one(bench: Bench):
    connection = await bench.connected()
    for number in range(50):
        (connection.disable if number % 2 else connection.reconnect)()
        for _ in range(number % 7):
            await asyncio.sleep(0)
    connection.enable()
    await connection.settled()
    await until(lambda: connection.state.status == "connected")

    assert sum(not far.is_closed for far in bench.made) == 1


@pytest.mark.requirement("LIF-9")
async def test_enabling_what_is_connected_changes_nothing(bench: Bench):
    connection = await bench.connected()
    connection.enable()
    await connection.settled()

    assert len(bench.made) == 1


@pytest.mark.requirement("LIF-9")
async def test_disabling_while_it_connects_ends_that(bench: Bench):
    bench.next = lambda: Far(hangs=True)
    connection = bench.connection()
    connection.start()
    await until(lambda: bench.made)
    connection.disable("enough")
    async with asyncio.timeout(5):
        await connection.settled()

    assert (connection.state.status, connection.state.reason) == ("disabled", "enough")


@pytest.mark.requirement("LIF-10")
@pytest.mark.parametrize("hangs", [True, False])
async def test_closing_is_safe_at_any_time_and_in_any_task(bench: Bench, hangs: bool):
    bench.next = lambda: Far(hangs=hangs)
    connection = bench.connection()
    connection.start()
    for _ in range(3):
        await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await asyncio.gather(*(connection.close() for _ in range(5)))
        await connection.close()
        connection.enable()
        connection.reconnect()
        await connection.settled()

    assert connection.state.status == "disabled"
    with pytest.raises(NotConnected):
        await connection.wait_for_session(60)


async def test_closing_a_connection_that_was_never_started_does_nothing(bench: Bench):
    await bench.connection().close()

    assert bench.made == []


# --- whether it is still there ---


async def test_a_connection_that_answers_a_ping_stays(bench: Bench):
    connection = await bench.connected(place="remote")
    await connection.check(5)

    assert bench.made[0].sent[-1]["method"] == "ping"
    assert connection.state.status == "connected"


async def test_a_connection_that_answers_no_ping_is_reconnected(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    connection = await bench.connected(place="remote")
    monkeypatch.setattr(bench.made[0], "send", lambda message, about=None: None)
    await connection.check(0.01)
    await until(lambda: connection.state.status == "connected" and len(bench.made) == 2)


async def test_a_local_process_is_not_pinged_because_it_may_be_busy(bench: Bench):
    connection = await bench.connected()
    sent = len(bench.made[0].sent)
    await connection.check(5)

    assert len(bench.made[0].sent) == sent


# --- servers that rest ---


@pytest.mark.requirement("LIF-11")
async def test_a_lazy_server_is_started_by_its_first_use(bench: Bench):
    connection = bench.connection(idle_seconds=60.0, starts_on_use=True)
    connection.start()
    async with asyncio.timeout(5):
        await connection.settled()
        assert (bench.made, connection.state.status, connection.offers_tools) == ([], "pending", True)
        session = await connection.wait_for_session(60)

    assert session is connection.session()


@pytest.mark.requirement("LIF-11")
async def test_an_unused_lazy_server_is_stopped_and_started_by_the_next_use(bench: Bench):
    connection = await bench.connected(idle_seconds=0.02)
    await until(lambda: bench.made[0].is_closed)
    assert (connection.state.status, connection.offers_tools) == ("pending", True)
    async with asyncio.timeout(5):
        await connection.wait_for_session(60)

    assert len(bench.made) == 2


# --- what a server asks ---


class Ponders:
    """A person who takes their time."""

    def __init__(self) -> None:
        self.asked = 0
        self.gone = 0
        self.is_stubborn = False
        self.may_answer = asyncio.Event()

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        self.asked += 1
        self.question = question
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.gone += 1
            if not self.is_stubborn:
                raise
        return FormAnswer("decline")


def replies(far: Far) -> list[dict[str, Any]]:
    return [message for message in far.sent if "method" not in message]


async def test_a_request_of_a_server_is_answered(bench: Bench):
    await bench.connected()
    bench.made[0].say(id=5, method="ping")
    bench.made[0].say(id=6, method="roots/list")
    await until(lambda: len(replies(bench.made[0])) == 2)

    by_id = {message["id"]: message for message in replies(bench.made[0])}
    assert by_id[5]["result"] == {}
    assert by_id[6]["error"]["code"] == -32601


def calling(connection: Connection, name: str = "act", seconds: float = 30) -> asyncio.Task[Raw]:
    """A call of which the server may ask questions; it is under way when the loop turns."""
    session = connection.session()
    assert session is not None
    call = RelatedCall("tools/call", name)
    return asyncio.create_task(session.request("tools/call", {}, timeout_seconds=seconds, call=call))


def ask(far: Far, id: object = 1) -> None:
    far.say(id=id, method="elicitation/create", params={"message": "who?"})


@pytest.fixture
async def asked(bench: Bench) -> AsyncGenerator[tuple[Far, Ponders, asyncio.Task[Raw]]]:
    """A server in the course of whose call a person is being asked."""
    person = Ponders()
    task = calling(await bench.connected(forms=person))
    far = bench.made[0]
    await until(lambda: far.sent[-1]["method"] == "tools/call")
    ask(far)
    await until(lambda: person.asked)
    yield far, person, task
    task.cancel()
    await asyncio.wait([task])


Asked = tuple[Far, "Ponders", "asyncio.Task[Raw]"]


@pytest.mark.requirement("ASK-3")
async def test_an_elicitation_that_belongs_to_no_call_is_refused_without_asking_a_person(bench: Bench):
    person = Ponders()
    await bench.connected(forms=person)
    ask(bench.made[0])

    (reply,) = replies(bench.made[0])
    assert reply["error"] == {
        "code": -32600,
        "message": "elicitation/create is refused: it belongs to no call that is under way",
    }
    assert person.asked == 0


async def test_a_question_ends_when_the_server_cancels_it_and_is_not_answered(asked: Asked):
    far, person, _ = asked
    far.say(method="notifications/cancelled", params={"requestId": 2})
    far.say(method="notifications/cancelled", params={"requestId": [1]})
    far.say(method="notifications/cancelled")
    await asyncio.sleep(0)
    assert not person.gone
    far.say(method="notifications/cancelled", params={"requestId": 1})
    await until(lambda: person.gone)

    assert replies(far) == []
    ask(far)  # the id is free again
    await until(lambda: person.asked == 2)


@pytest.mark.parametrize("how", ["cancelled", "answered"])
async def test_a_question_ends_with_its_call_and_the_server_is_answered(asked: Asked, how: str):
    far, person, task = asked
    if how == "cancelled":
        task.cancel()
    else:
        far.say(id=far.sent[-1]["id"], result={})
    await until(lambda: person.gone)
    await until(lambda: replies(far))

    (reply,) = replies(far)
    assert reply["error"] == {
        "code": -32603,
        "message": "elicitation/create was not answered: the call that it belongs to has ended",
    }


@pytest.mark.parametrize("how", ["its call", "the server"])
async def test_a_front_end_that_answers_although_it_was_cancelled_changes_nothing(asked: Asked, how: str):
    far, person, task = asked
    person.is_stubborn = True
    if how == "its call":
        task.cancel()
    else:
        far.say(method="notifications/cancelled", params={"requestId": 1})
    await until(lambda: person.gone)
    await asyncio.sleep(0.01)

    assert [message["error"]["code"] for message in replies(far)] == ([-32603] if how == "its call" else [])


async def test_a_question_that_arrives_together_with_the_reply_to_its_call_is_answered(bench: Bench):
    person = Ponders()
    task = calling(await bench.connected(forms=person))
    far = bench.made[0]
    await until(lambda: far.sent[-1]["method"] == "tools/call")
    ask(far)
    far.say(id=far.sent[-1]["id"], result={})
    await task
    await until(lambda: replies(far))

    assert [message["error"]["code"] for message in replies(far)] == [-32603]


async def test_a_question_ends_with_a_call_that_times_out(bench: Bench):
    person = Ponders()
    task = calling(await bench.connected(forms=person), seconds=0.05)
    far = bench.made[0]
    await until(lambda: far.sent[-1]["method"] == "tools/call")
    ask(far)
    await until(lambda: person.gone)

    with pytest.raises(CallTimeout):
        await task


async def test_a_question_of_one_of_several_calls_stays_until_the_last_has_ended(bench: Bench):
    person = Ponders()
    connection = await bench.connected(forms=person)
    first, second = calling(connection, "one"), calling(connection, "two")
    far = bench.made[0]
    await until(lambda: len([each for each in far.sent if each.get("method") == "tools/call"]) == 2)
    ask(far)
    await until(lambda: person.asked)
    assert [call.name for call in person.question.calls] == ["one", "two"]
    first.cancel()
    await asyncio.wait([first])
    assert not person.gone
    second.cancel()
    await until(lambda: person.gone)


async def test_an_id_that_is_in_use_is_refused(asked: Asked):
    far, person, _ = asked
    ask(far)

    assert replies(far)[-1]["error"] == {"code": -32600, "message": "a request with this id is open"}
    assert person.asked == 1


async def test_no_more_questions_wait_for_a_person_than_are_allowed(bench: Bench):
    person = Ponders()
    task = calling(await bench.connected(forms=person))
    await until(lambda: bench.made[0].sent[-1]["method"] == "tools/call")
    for number in range(10 * QUESTIONS_LIMIT):
        bench.made[0].say(id=number, method="elicitation/create", params={"message": "who?"})
    bench.made[0].say(id="still", method="ping")
    assert replies(bench.made[0])[-1] == {"jsonrpc": "2.0", "id": "still", "result": {}}
    await until(lambda: person.asked)

    assert person.asked == 1, "one at a time"
    refused = [message for message in replies(bench.made[0]) if "error" in message]
    assert len(refused) == 9 * QUESTIONS_LIMIT
    person.may_answer.set()
    await until(lambda: len(replies(bench.made[0])) == 10 * QUESTIONS_LIMIT + 1)
    assert person.asked == QUESTIONS_LIMIT
    task.cancel()


async def test_questions_end_with_the_connection(bench: Bench):
    person = Ponders()
    connection = await bench.connected(forms=person)
    task = calling(connection)
    await until(lambda: bench.made[0].sent[-1]["method"] == "tools/call")
    ask(bench.made[0])
    await until(lambda: person.asked)
    async with asyncio.timeout(5):
        await connection.close()
    assert person.gone
    with pytest.raises(ConnectionLost):
        await task
    person.may_answer.set()
    await asyncio.sleep(0)

    assert replies(bench.made[0]) == []


# --- what is told ---


@pytest.mark.requirement("LIF-1")
async def test_every_change_is_reported(bench: Bench):
    connection = await bench.connected()
    bench.made[0].die()
    await until(lambda: connection.state.status == "connected")
    await connection.close()
    bench.bus.close()
    told = [
        (event.status, event.phase, event.attempt)
        async for event in bench.heard
        if isinstance(event, events.ServerStateChanged)
    ]

    assert told == [
        ("pending", "connecting", 1),
        ("pending", "handshaking", 1),
        ("connected", None, 0),
        ("pending", "reconnecting", 0),
        ("pending", "reconnecting", 1),
        ("connected", None, 0),
        ("disabled", None, 0),
    ]
