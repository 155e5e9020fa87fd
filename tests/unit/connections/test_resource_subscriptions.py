"""Subscriptions to resources: in both eras, over several connections, and with very many notifications."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw

from dragoman.connections import resource_subscriptions as module
from dragoman.connections.resource_subscriptions import PENDING_LIMIT, ResourceSubscriptions, Updates
from dragoman.errors import CallError, ConnectionLost, RemoteError
from dragoman.events import EventBus, ResourceUpdated
from tests.integration.waiting import until

pytestmark = pytest.mark.requirement("CAT-9")
SUBSCRIBES = {"resources": {"subscribe": True}}


def raw(**value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


class Session:
    """Remembers what it is asked; a stream stands until it is given up."""

    def __init__(self, era: str, room: "Room", refuses: CallError | None = None) -> None:
        self.server = "box"
        self.driver = SimpleNamespace(era=era)
        self.lost_cause: str | None = None
        self.asked: list[tuple[str, Any]] = []
        self.open: list[Any] = []
        self.refuses = refuses
        self._room = room

    async def request(
        self,
        method: str,
        params: Any,
        *,
        timeout_seconds: float,
        is_long_lived: bool = False,
        before_send: object = None,
    ) -> Raw:
        self.asked.append((method, params.get("uri", params)))
        if self.refuses is not None:
            raise self.refuses
        if not is_long_lived:
            return Raw(b"{}")
        wanted = params["notifications"]
        self.open.append(wanted)
        asyncio.get_running_loop().call_soon(self._room.acknowledge, wanted)
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            self.open.remove(wanted)


class Room:
    def __init__(self) -> None:
        self.bus = EventBus()
        self.events = self.bus.listen()
        self.missed = 0
        self.log: list[str] = []
        self.honours: Any = None
        self.silent = False
        self.subscriptions = ResourceSubscriptions(
            "box",
            self.bus,
            missed=self._miss,
            logged=lambda level, text: self.log.append(text),
            timeout_seconds=lambda: 1.0,
        )

    def _miss(self) -> None:
        self.missed += 1

    def acknowledge(self, wanted: Any) -> None:
        if self.silent:
            return
        honoured = wanted if self.honours is None else self.honours
        self.subscriptions.acknowledged(raw(notifications=honoured))

    async def link(self, era: str, capabilities: Any = SUBSCRIBES, **options: Any) -> Any:
        session = Session(era, self, **options)
        await self.subscriptions.open(session, capabilities)  # type: ignore[arg-type]
        return session

    def hear(self, uri: Any) -> None:
        self.subscriptions.updated(raw(uri=uri))


@pytest.fixture
async def room() -> Any:
    room = Room()
    yield room
    room.subscriptions.close()


async def next_of(updates: Updates) -> str:
    return (await asyncio.wait_for(anext(updates), 5)).uri


async def test_several_subscribers_share_one_request_to_a_legacy_server(room: Room):
    session = await room.link("legacy")
    first, second = await room.subscriptions.add("x:a"), await room.subscriptions.add("x:a")
    assert session.asked == [("resources/subscribe", "x:a")]
    room.hear("x:a")
    assert await next_of(first) == await next_of(second) == "x:a"
    await room.subscriptions.remove(first)
    assert len(session.asked) == 1
    await room.subscriptions.remove(second)
    assert session.asked[-1] == ("resources/unsubscribe", "x:a")


async def test_a_new_stream_is_opened_before_the_old_one_of_a_modern_server_ends(room: Room):
    session = await room.link("modern", {**SUBSCRIBES, "tools": {"listChanged": True}})
    assert session.open == [{"toolsListChanged": True}]
    first = await room.subscriptions.add("x:a")
    second = await room.subscriptions.add("x:b")
    await until(lambda: len(session.open) == 1)
    assert session.open == [{"toolsListChanged": True, "resourceSubscriptions": ["x:a", "x:b"]}]
    await room.subscriptions.remove(first)
    await room.subscriptions.remove(second)
    await until(lambda: session.open == [{"toolsListChanged": True}])
    assert [method for method, _ in session.asked] == ["subscriptions/listen"] * 5


async def test_without_other_subscriptions_the_stream_ends_with_the_last_subscriber(room: Room):
    session = await room.link("modern")
    assert session.open == []
    await room.subscriptions.remove(await room.subscriptions.add("x:a"))
    await until(lambda: session.open == [])
    assert len(session.asked) == 1


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize(
    "capabilities", [{}, {"resources": {}}, {"resources": {"subscribe": "yes"}}, {"resources": 1}]
)
async def test_a_server_without_the_capability_gets_no_subscription(room: Room, era: str, capabilities: Any):
    session = await room.link(era, capabilities)
    with pytest.raises(CallError, match="does not support resource subscriptions"):
        await room.subscriptions.add("x:a")
    assert session.asked == []


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_refusal_is_raised_to_the_subscriber(room: Room, era: str):
    await room.link(era, refuses=RemoteError("box", -32602, "no"))
    with pytest.raises(RemoteError):
        await room.subscriptions.add("x:a")
    room.hear("x:a")


async def test_a_resource_missing_from_the_acknowledgement_of_a_modern_server_is_not_subscribed(room: Room):
    session = await room.link("modern", {**SUBSCRIBES, "tools": {"listChanged": True}})
    room.honours = {"toolsListChanged": True}
    with pytest.raises(CallError, match="does not accept a subscription"):
        await room.subscriptions.add("x:a")
    await until(lambda: session.open == [{"toolsListChanged": True}])


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_after_a_reconnect_subscriptions_are_renewed_and_resources_count_as_changed(
    room: Room, era: str
):
    await room.link(era)
    updates = await room.subscriptions.add("x:a")
    room.subscriptions.close()
    again = await room.link(era)

    assert await next_of(updates) == "x:a"
    wanted = "x:a" if era == "legacy" else {"notifications": {"resourceSubscriptions": ["x:a"]}}
    assert [params for _, params in again.asked] == [wanted]


async def test_a_subscription_that_cannot_be_renewed_is_logged(room: Room):
    await room.link("legacy")
    updates = await room.subscriptions.add("x:a")
    room.subscriptions.close()
    await room.link("legacy", refuses=RemoteError("box", -32002, "gone"))

    assert await next_of(updates) == "x:a"
    assert "subscription has ended" in room.log[0]


async def test_an_update_of_a_sub_resource_is_reported_to_subscribers_of_its_parent(room: Room):
    await room.link("legacy")
    whole, part, other = [await room.subscriptions.add(uri) for uri in ("x://a", "x://a/b", "x://ab")]
    room.hear("x://a/c")
    room.hear("x://a/b")

    assert await next_of(whole) == "x://a/c"
    assert await next_of(whole) == await next_of(part) == "x://a/b", (
        "that another watches it takes nothing away"
    )
    other.finish()
    assert [each async for each in other] == []


@pytest.mark.parametrize(
    "uri", [7, None, "", "x" * 9000, "x:a\n", "x:\u202ea", [], {}], ids=lambda u: ascii(u)[:12]
)
async def test_an_update_without_a_uri_is_ignored(room: Room, uri: Any):
    await room.link("legacy")
    updates = await room.subscriptions.add("x:a")
    room.hear(uri)
    room.subscriptions.updated(Raw())
    updates.finish()

    assert [each async for each in updates] == []


async def test_an_update_without_a_subscriber_is_not_reported(room: Room):
    await room.link("legacy")
    for number in range(10_000):
        room.hear(f"x:{number}")

    assert room.subscriptions._news == {}
    assert room.subscriptions._timer is None


async def test_several_changes_of_one_resource_are_reported_as_one(room: Room):
    await room.link("legacy")
    updates = await room.subscriptions.add("x:a")
    for _ in range(10_000):
        room.hear("x:a")
    updates.finish()

    assert [each.uri async for each in updates] == ["x:a"]
    assert await asyncio.wait_for(anext(room.events), 5) == ResourceUpdated(server="box", uri="x:a")


async def test_a_flood_of_sub_resource_updates_has_a_bounded_cost_and_the_parent_is_reported(room: Room):
    await room.link("legacy")
    updates = await room.subscriptions.add("x:a")
    for number in range(100_000):
        room.hear(f"x:a/{number}")
        assert len(updates._pending) <= PENDING_LIMIT
        assert len(room.subscriptions._news) <= PENDING_LIMIT + 1
    updates.finish()

    assert "x:a" in [each.uri async for each in updates]


async def test_after_a_gap_of_the_stream_every_resource_counts_as_changed(
    room: Room, monkeypatch: pytest.MonkeyPatch
):
    await room.link("modern", {**SUBSCRIBES, "tools": {"listChanged": True}})
    updates = await room.subscriptions.add("x:a")
    room.subscriptions._missed()

    assert await next_of(updates) == "x:a"
    assert room.missed == 1


async def test_a_subscription_made_while_disconnected_is_sent_after_the_reconnect(room: Room):
    updates = await room.subscriptions.add("x:a")
    session = await room.link("legacy")

    assert await next_of(updates) == "x:a"
    assert session.asked == [("resources/subscribe", "x:a")]
    assert module.UPDATED == "notifications/resources/updated"


@pytest.mark.parametrize("comes_back", [False, True])
async def test_a_connection_lost_during_a_subscribe_does_not_affect_the_next_one(
    room: Room, comes_back: bool
):
    capabilities = {**SUBSCRIBES, "tools": {"listChanged": True}}
    old = await room.link("modern", capabilities)
    room.silent = True
    adding = asyncio.create_task(room.subscriptions.add("x:a"))
    await until(lambda: len(old.open) == 2)
    old.lost_cause = "gone"
    room.subscriptions.close()
    room.silent = False
    new = await room.link("modern", capabilities) if comes_back else None

    with pytest.raises(ConnectionLost):
        await adding
    if new is not None:
        assert new.open == [{"toolsListChanged": True}], "its stream stands, and is the only one"
    await until(lambda: old.open == [])


async def test_a_subscriber_cancelled_during_the_request_leaves_the_old_stream_unchanged(room: Room):
    session = await room.link("modern", {**SUBSCRIBES, "tools": {"listChanged": True}})
    room.silent = True
    adding = asyncio.create_task(room.subscriptions.add("x:a"))
    await until(lambda: len(session.open) == 2)
    adding.cancel()

    await until(lambda: session.open == [{"toolsListChanged": True}])
    assert room.subscriptions._watched == {}


async def test_a_subscriber_cancelled_while_it_unsubscribes_is_unsubscribed(room: Room):
    session = await room.link("legacy")
    updates = await room.subscriptions.add("x:a")
    async with room.subscriptions._turn:
        leaving = asyncio.create_task(room.subscriptions.remove(updates))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.wait([leaving])

    assert room.subscriptions._watched == {}
    assert (await room.subscriptions.add("x:a")).uri == "x:a"
    assert [method for method, _ in session.asked] == ["resources/subscribe"] * 2


async def test_a_subscriber_that_joins_while_the_last_one_unsubscribes_gets_updates(room: Room):
    session = await room.link("legacy")
    first = await room.subscriptions.add("x:a")
    _, second = await asyncio.gather(room.subscriptions.remove(first), room.subscriptions.add("x:a"))
    room.hear("x:a")

    assert await next_of(second) == "x:a"
    last_lines = [method for method, _ in session.asked if method.startswith("resources/")][-1]
    assert last_lines == "resources/subscribe"


async def test_after_the_last_connection_no_subscriber_waits_for_ever(room: Room):
    await room.link("legacy")
    updates = await room.subscriptions.add("x:a")
    waiting = asyncio.create_task(anext(updates, None))
    room.subscriptions.close()
    room.subscriptions.finish()

    assert await asyncio.wait_for(waiting, 5) is None
    await room.subscriptions.remove(updates)
