"""Asking a modern server to tell of changes, and asking again when the stream ends."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import Raw

from dragoman.connections import subscription_stream
from dragoman.connections.subscription_stream import SubscriptionStream, wanted_changes
from dragoman.errors import (
    CallError,
    CallTimeout,
    ConnectionLost,
    HttpError,
    MalformedReply,
    MessageTooLarge,
    RemoteError,
)

pytestmark = pytest.mark.requirement("LIF-8")


@pytest.mark.parametrize(
    ("capabilities", "wanted"),
    [
        ({}, {}),
        ({"tools": {}}, {}),
        ({"tools": {"listChanged": True}}, {"toolsListChanged": True}),
        ({"tools": {"listChanged": False}}, {}),
        ({"tools": {"listChanged": "yes"}}, {}),
        ({"tools": {"listChanged": 1}}, {}),
        ({"tools": True}, {}),
        ({"tools": None}, {}),
        ({"tools": ["listChanged"]}, {}),
        ({"logging": {"listChanged": True}}, {}),
        (
            {
                "tools": {"listChanged": True},
                "prompts": {"listChanged": True},
                "resources": {"listChanged": True, "subscribe": True},
            },
            {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True},
        ),
    ],
    ids=str,
)
def test_only_declared_list_changes_are_requested(
    capabilities: Mapping[str, Any], wanted: Mapping[str, bool]
):
    assert wanted_changes(capabilities) == wanted


class Streams:
    """A session whose streams end when told to."""

    server = "box"

    def __init__(self) -> None:
        self.lost_cause: str | None = None
        self.asked: list[tuple[str, Any, bool]] = []
        self.opened = asyncio.Semaphore(0)
        self._end: asyncio.Future[Raw] | None = None

    async def request(
        self, method: str, params: Any, *, timeout_seconds: float, is_long_lived: bool = False
    ) -> Raw:
        self.asked.append((method, params, is_long_lived))
        self._end = asyncio.get_running_loop().create_future()
        self.opened.release()
        return await self._end

    async def end(self, error: CallError | None = None) -> None:
        async with asyncio.timeout(5):
            await self.opened.acquire()
        assert self._end is not None
        if error is None:
            self._end.set_result(Raw(b"{}"))
        else:
            self._end.set_exception(error)


class Pauses:
    """Sleeping that takes no time and is remembered."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.taken.append(seconds)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    pauses = Pauses()
    monkeypatch.setattr(subscription_stream.asyncio, "sleep", pauses.sleep)
    return pauses


class Heard:
    def __init__(self) -> None:
        self.streams = Streams()
        self.missed = 0
        self.listening = SubscriptionStream(
            self.streams,  # type: ignore[arg-type]
            {"toolsListChanged": True},
            self._miss,
        )

    def _miss(self) -> None:
        self.missed += 1

    async def finished(self) -> bool:
        await asyncio.wait([self.listening._task], timeout=5)
        return self.listening._task.done()


@pytest.fixture
async def heard(pauses: Pauses) -> Any:
    heard = Heard()
    yield heard
    heard.listening.stop()
    await heard.finished()


async def test_one_subscription_stream_is_requested(heard: Heard):
    async with asyncio.timeout(5):
        await heard.streams.opened.acquire()

    assert heard.streams.asked == [
        ("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, True)
    ]
    assert heard.missed == 0


async def test_a_stream_that_ends_is_reopened_after_growing_pauses(heard: Heard, pauses: Pauses):
    for _ in range(8):
        await heard.streams.end()
    async with asyncio.timeout(5):
        await heard.streams.opened.acquire()

    assert pauses.taken == [1, 2, 4, 8, 16, 30, 30, 30]
    assert heard.missed == 0, "not before the new stream stands"
    heard.listening.acknowledge()
    heard.listening.acknowledge()
    assert heard.missed == 1
    assert len(heard.streams.asked) == 9


async def test_after_a_long_stream_the_pauses_start_from_the_minimum(
    heard: Heard, pauses: Pauses, monkeypatch: pytest.MonkeyPatch
):
    for _ in range(3):
        await heard.streams.end()
    async with asyncio.timeout(5):
        await heard.streams.opened.acquire()
    heard.streams.opened.release()
    monkeypatch.setattr(subscription_stream, "STABLE_SECONDS", -1.0)
    await heard.streams.end()
    async with asyncio.timeout(5):
        await heard.streams.opened.acquire()

    assert pauses.taken == [1, 2, 4, 1]


@pytest.mark.parametrize(
    "error",
    [
        ConnectionLost("box", "reset", may_have_run=True),
        HttpError("box", 500, "HTTP 500", may_have_run=True),
        HttpError("box", 503, "HTTP 503", may_have_run=False),
        HttpError("box", 429, "HTTP 429", may_have_run=False),
    ],
    ids=str,
)
async def test_after_a_temporary_failure_the_stream_is_reopened(heard: Heard, error: CallError):
    await heard.streams.end(error)
    async with asyncio.timeout(5):
        await heard.streams.opened.acquire()

    assert len(heard.streams.asked) == 2
    heard.listening.acknowledge()
    assert heard.missed == 1


@pytest.mark.parametrize(
    "error",
    [
        RemoteError("box", -32601, "no such method"),
        RemoteError("box", -32603, "no"),
        HttpError("box", 404, "HTTP 404", may_have_run=False),
        HttpError("box", 405, "HTTP 405", may_have_run=False),
        HttpError("box", 401, "HTTP 401", may_have_run=False),
        MalformedReply("box", "html"),
        MessageTooLarge("box", 1),
        CallTimeout("box", "subscriptions/listen", 1),
    ],
    ids=str,
)
async def test_a_server_that_refuses_the_subscription_is_not_asked_again(
    heard: Heard, pauses: Pauses, error: CallError
):
    await heard.streams.end(error)

    assert await heard.finished()
    assert (len(heard.streams.asked), pauses.taken, heard.missed) == (1, [], 0)


async def test_it_ends_with_the_connection(heard: Heard):
    heard.streams.lost_cause = "it exited"
    await heard.streams.end(ConnectionLost("box", "it exited", may_have_run=True))

    assert await heard.finished()
    assert heard.missed == 0


async def test_it_has_started_once_the_server_acknowledges(heard: Heard, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(subscription_stream, "ACKNOWLEDGE_SECONDS", 60.0)
    begun = asyncio.create_task(heard.listening.begun())
    async with asyncio.timeout(5):
        await heard.streams.opened.acquire()
        assert not begun.done()
        heard.listening.acknowledge()
        await begun


async def test_it_has_started_once_the_server_refuses(heard: Heard, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(subscription_stream, "ACKNOWLEDGE_SECONDS", 60.0)
    begun = asyncio.create_task(heard.listening.begun())
    await heard.streams.end(RemoteError("box", -32601, "no such method"))
    async with asyncio.timeout(5):
        await begun


async def test_a_server_that_never_acknowledges_is_not_waited_for(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(subscription_stream, "ACKNOWLEDGE_SECONDS", 0.01)
    async with asyncio.timeout(5):
        await heard.listening.begun()


async def test_changes_before_a_late_acknowledgement_count_as_missed(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(subscription_stream, "ACKNOWLEDGE_SECONDS", 0.01)
    async with asyncio.timeout(5):
        await heard.listening.begun()
    assert heard.missed == 0
    heard.listening.acknowledge()
    heard.listening.acknowledge()

    assert heard.missed == 1


async def test_with_a_timely_acknowledgement_no_change_counts_as_missed(heard: Heard):
    heard.listening.acknowledge()
    async with asyncio.timeout(5):
        await heard.listening.begun()
    heard.listening.acknowledge()

    assert heard.missed == 0
