"""Servers' lists besides tools: read once however many want them, kept, and read again on a change."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import Raw

from dragoman.catalog.catalog import Catalog
from dragoman.catalog.paging import Listing
from dragoman.config.load import Sources, load
from dragoman.connections.factory import TransportDependencies
from dragoman.connections.handshake import HandshakeResult
from dragoman.connections.target import ConnectionContext
from dragoman.content.redact import Redactor
from dragoman.errors import RemoteError
from dragoman.events import EventBus, PromptsChanged, ResourcesChanged, ToolsChanged
from dragoman.names import ServerName
from dragoman.servers import lists as module
from dragoman.servers.lists import DEFAULT_TTL_SECONDS, PROBLEM_LIMIT, RESOURCES, ListContext, ListReader
from dragoman.servers.registry import ServerRegistry
from dragoman.settings import Settings
from dragoman.testing import FakeClock
from dragoman.wire.messages import Implementation
from tests.integration.waiting import until

pytestmark = pytest.mark.requirement("CAT-5")
BOX = ServerName("box")
TELLS = {"resources": {"listChanged": True}, "prompts": {"listChanged": True}}


class Session:
    """Answers pages, or as told, and counts."""

    def __init__(self, **page: Any) -> None:
        self.page: dict[str, Any] = {"resources": [{"uri": "x:1"}], **page}
        self.asked: list[str] = []
        self.held: asyncio.Event | None = None
        self.error: Exception | None = None
        self.mirrors_arguments = False
        self.lost_cause = None
        self.server = "box"

    async def fetch(self, params: Mapping[str, Any]) -> Raw:
        return await self.request("resources/list", params, timeout_seconds=1)

    async def request(self, method: str, params: Mapping[str, Any] | None, *, timeout_seconds: float) -> Raw:
        self.asked.append(method)
        if self.held is not None:
            await self.held.wait()
        if self.error is not None:
            raise self.error
        pages = {**self.page, "resourceTemplates": [], "prompts": [{"name": "p"}], "tools": []}
        return Raw(json.dumps(pages).encode())


def context_of(clock: FakeClock) -> ListContext:
    return ListContext(BOX, Settings({}, {}), clock, Redactor(()))


class Shelf:
    def __init__(self, **page: Any) -> None:
        self.clock = FakeClock()
        self.server = Session(**page)
        self.reader = ListReader(RESOURCES, context_of(self.clock))

    async def uris(self, *, notifies_changes: bool = True, fresh: bool = False) -> list[str]:
        return [each.uri for each in (await self.read(notifies_changes=notifies_changes, fresh=fresh)).items]

    async def read(self, *, notifies_changes: bool = True, fresh: bool = False) -> Any:
        return await self.reader.get(
            self.server, self.server.fetch, notifies_changes=notifies_changes, fresh=fresh
        )  # type: ignore[arg-type]


async def test_concurrent_readers_share_one_request():
    shelf = Shelf()
    found = await asyncio.gather(*(shelf.uris() for _ in range(20)))

    assert found == [["x:1"]] * 20
    assert shelf.server.asked == ["resources/list"]


async def test_a_cancelled_reader_does_not_cancel_the_others():
    shelf = Shelf()
    shelf.server.held = asyncio.Event()
    first, second = (asyncio.create_task(shelf.uris()) for _ in range(2))
    await until(lambda: shelf.server.asked)
    first.cancel()
    shelf.server.held.set()

    assert await second == ["x:1"]


@pytest.mark.parametrize(
    ("page", "notifies_changes", "later", "asked"),
    [
        ({}, True, 1e6, 1),
        ({}, False, DEFAULT_TTL_SECONDS - 1, 1),
        ({}, False, DEFAULT_TTL_SECONDS, 2),
        ({"ttlMs": 5000}, True, 4.9, 1),
        ({"ttlMs": 5000}, True, 5.0, 2),
        ({"ttlMs": 0}, True, 0.0, 2),
        ({"ttlMs": -7}, True, 0.0, 2),
        ({"ttlMs": "long"}, True, 0.0, 2),
        ({"ttlMs": 10**15}, True, 24 * 3600.0, 2),
        ({"ttlMs": 5000, "cacheScope": "public"}, True, 4.9, 1),
    ],
    ids=str,
)
async def test_a_list_is_cached_for_the_servers_ttl(
    page: dict[str, Any], notifies_changes: bool, later: float, asked: int
):
    shelf = Shelf(**page)
    await shelf.uris(notifies_changes=notifies_changes)
    shelf.clock.advance(later)
    await shelf.uris(notifies_changes=notifies_changes)

    assert len(shelf.server.asked) == asked


async def test_a_forced_refresh_sends_a_new_request():
    shelf = Shelf()
    await shelf.uris()
    await shelf.uris(fresh=True)

    assert len(shelf.server.asked) == 2


async def test_a_forced_refresh_does_not_use_a_request_that_was_already_running():
    shelf = Shelf()
    shelf.server.held = asyncio.Event()
    before = asyncio.create_task(shelf.uris())
    await until(lambda: len(shelf.server.asked) == 1)
    now = asyncio.create_task(shelf.uris(fresh=True))
    await until(lambda: len(shelf.server.asked) == 2)
    shelf.server.held.set()

    assert await before == await now == ["x:1"]
    assert await shelf.uris() == ["x:1"]
    assert len(shelf.server.asked) == 2


async def test_a_change_notification_during_a_request_causes_another_request():
    shelf = Shelf()
    shelf.server.held = asyncio.Event()
    early = asyncio.create_task(shelf.uris())
    await until(lambda: shelf.server.asked)
    shelf.reader.changed()
    late = asyncio.create_task(shelf.uris())
    await until(lambda: len(shelf.server.asked) == 2)
    shelf.server.held.set()

    assert (await early, await late) == (["x:1"], ["x:1"])


async def test_a_server_without_the_method_has_an_empty_list_and_no_problem():
    """Many have resources, and no templates."""
    shelf = Shelf()
    shelf.server.error = RemoteError("box", -32601, "Method not found")

    assert await shelf.read() == Listing((), (), is_whole=True)
    assert await shelf.read() == Listing((), (), is_whole=True)
    assert shelf.server.asked == ["resources/list"], "it is an answer, and kept like one"


async def test_when_a_request_fails_the_last_list_is_shown_and_marked_as_old():
    shelf = Shelf(ttlMs=0)
    await shelf.uris()
    shelf.server.error = RemoteError("box", -32603, "on \x1b[31mfire")
    found = await shelf.read()

    assert [each.uri for each in found.items] == ["x:1"]
    assert not found.is_whole
    assert "incomplete" in found.problems[0]
    assert found.problems[1] == "what was known before is shown"


async def test_one_bad_entry_is_left_out_alone():
    shelf = Shelf(resources=[{"uri": "x:1"}, {"uri": ""}, 7, {"uri": "x:1"}, {"uri": "x:2"}])
    found = await shelf.read()

    assert [each.uri for each in found.items] == ["x:1", "x:2"]
    assert [problem.partition(" is left out")[0] for problem in found.problems] == [
        "number 2 of the resources",
        "number 3 of the resources",
        "number 4 of the resources",
    ]


async def test_very_many_bad_entries_are_counted():
    shelf = Shelf(resources=[7] * (PROBLEM_LIMIT + 30))
    found = await shelf.read()

    assert len(found.problems) == PROBLEM_LIMIT + 1
    assert found.problems[-1] == "and 30 problems more"


class Room:
    """A server of a host, as far as its lists are concerned."""

    def __init__(self, capabilities: Mapping[str, Any]) -> None:
        bus = EventBus()
        self.events = bus.listen()
        self.session = Session()
        configuration = load(Sources.here(given={"box": {"command": "x"}}, only_given=True))
        registry = ServerRegistry(
            configuration,
            Catalog(),
            ConnectionContext.of(configuration.settings, FakeClock(), bus),
            TransportDependencies(),
            lambda _: (),
        )
        self.server = registry["box"]
        handshake_result = HandshakeResult("2025-11-25", Implementation("s", "1"), capabilities, None)
        self.server.connection._handshake_result = handshake_result

    async def open(self) -> None:
        await self.server._prepare(self.session, 5.0)  # type: ignore[arg-type]

    def notice(self, what: str, session: Any = None) -> None:
        self.server._notified(session or self.session, f"notifications/{what}/list_changed")

    async def event(self) -> Any:
        while isinstance(event := await asyncio.wait_for(anext(self.events), 5), ToolsChanged):
            pass
        return event

    @property
    def is_reading(self) -> bool:
        return any(reading.is_running for reading in self.server._background.values())


@pytest.mark.requirement("LIF-2")
async def test_lists_are_read_when_the_server_connects():
    room = Room({"resources": {}, "prompts": {}, "tools": {}})
    await room.open()
    found = [await room.event(), await room.event()]

    assert ResourcesChanged(server="box", resource_count=1, template_count=0) in found
    assert PromptsChanged(server="box", prompt_count=1) in found
    assert sorted(room.session.asked) == [
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "tools/list",
    ]


async def test_an_empty_list_is_reported_only_if_the_list_was_not_empty_before():
    room = Room({"resources": {"listChanged": True}})
    room.session.page["resources"] = []
    await room.open()
    await until(lambda: not room.is_reading)
    room.session.page["resources"] = [{"uri": "x:1"}]
    room.notice("resources")
    assert (await room.event()).resource_count == 1
    room.session.page["resources"] = []
    room.notice("resources")
    assert (await room.event()).resource_count == 0


@pytest.mark.parametrize("capabilities", [{}, {"tools": {}}, {"resources": True, "prompts": None}], ids=str)
async def test_a_server_that_offers_nothing_is_not_asked(capabilities: dict[str, Any]):
    room = Room(capabilities)
    await room.open()
    room.notice("prompts")
    await asyncio.sleep(0)

    assert room.session.asked == ["tools/list"]


@pytest.mark.requirement("LIF-2")
async def test_a_burst_of_changes_is_read_once_or_twice(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.001)
    room = Room(TELLS)
    for _ in range(500):
        room.notice("prompts")
    await room.event()
    await until(lambda: not room.is_reading)

    assert 1 <= room.session.asked.count("prompts/list") <= 2
    assert "resources/list" not in room.session.asked, "only the list that changed is read"


async def test_a_server_that_changes_its_list_all_the_time_is_read_with_pauses(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.05)
    room = Room(TELLS)

    class Restless(Session):
        async def request(self, *args: Any, **options: Any) -> Raw:
            if len(self.asked) < 3:
                room.notice("prompts", self)
            return await super().request(*args, **options)

    began = asyncio.get_running_loop().time()
    server = Restless()
    room.notice("prompts", server)
    await until(lambda: not room.is_reading)

    assert server.asked == ["prompts/list"] * 4
    assert asyncio.get_running_loop().time() - began >= 3 * 0.05


async def test_nothing_remains_of_a_disabled_server():
    room = Room({"prompts": {}})
    await room.open()
    await room.event()
    assert room.server.prompts.known is not None
    room.server.forget_lists()

    assert room.server.prompts.known is None


async def test_nothing_of_a_former_connection_is_used_after_a_reconnect():
    room = Room({"prompts": {}})
    await room.open()
    await room.event()
    room.session.held = asyncio.Event()
    again = asyncio.create_task(room.open())
    await until(lambda: room.session.asked.count("prompts/list") == 2)

    assert room.server.prompts.known is None
    room.session.held.set()
    await again


async def test_two_requests_for_a_changing_list_are_half_a_second_apart(
    monkeypatch: pytest.MonkeyPatch,
):
    pauses: list[float] = []
    sleep = asyncio.sleep
    room = Room(TELLS)

    async def recorded(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    class Restless(Session):
        async def request(self, *args: Any, **options: Any) -> Raw:
            if len(self.asked) < 2:
                room.notice("prompts", self)
            return await super().request(*args, **options)

    monkeypatch.setattr(module.asyncio, "sleep", recorded)
    server = Restless()
    room.notice("prompts", server)
    while room.is_reading:
        await sleep(0)
    assert server.asked == ["prompts/list"] * 3
    assert [seconds for seconds in pauses if seconds] == [0.5, 0.5]
