"""Servers' lists besides tools: read once however many want them, kept, and read again on a change."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import Raw

from dragoman.catalog import lists as module
from dragoman.catalog.lists import PROBLEM_LIMIT, RESOURCES, UNPROMISED_SECONDS, Lists, ListsOf, ServerList
from dragoman.errors import RemoteError
from dragoman.events import EventBus, PromptsChanged, ResourcesChanged
from dragoman.names import ServerName
from dragoman.testing import FakeClock
from tests.integration.waiting import until

pytestmark = pytest.mark.requirement("CAT-5")
BOX = ServerName("box")
TELLS = {"resources": {"listChanged": True}, "prompts": {"listChanged": True}}


class Server:
    """Answers pages, or as told, and counts."""

    def __init__(self, **page: Any) -> None:
        self.page: dict[str, Any] = {"resources": [{"uri": "x:1"}], **page}
        self.asked: list[str] = []
        self.held: asyncio.Event | None = None
        self.error: Exception | None = None

    async def fetch(self, params: Mapping[str, Any]) -> Raw:
        return await self.request("resources/list", params, timeout_seconds=1)

    async def request(self, method: str, params: Mapping[str, Any] | None, *, timeout_seconds: float) -> Raw:
        self.asked.append(method)
        if self.held is not None:
            await self.held.wait()
        if self.error is not None:
            raise self.error
        pages = {**self.page, "resourceTemplates": [], "prompts": [{"name": "p"}]}
        return Raw(json.dumps(pages).encode())


class Shelf:
    def __init__(self, **page: Any) -> None:
        self.clock = FakeClock()
        self.server = Server(**page)
        self.lists = ListsOf(RESOURCES, self.clock)

    async def uris(self, *, promised: bool = True, fresh: bool = False) -> list[str]:
        return [each.uri for each in (await self.read(promised=promised, fresh=fresh)).items]

    async def read(self, *, promised: bool = True, fresh: bool = False) -> Any:
        return await self.lists.of(BOX, self.server, self.server.fetch, promised=promised, fresh=fresh)


async def test_many_who_want_it_at_once_share_one_reading():
    shelf = Shelf()
    found = await asyncio.gather(*(shelf.uris() for _ in range(20)))

    assert found == [["x:1"]] * 20
    assert shelf.server.asked == ["resources/list"]


async def test_whoever_stops_waiting_does_not_stop_it_for_the_others():
    shelf = Shelf()
    shelf.server.held = asyncio.Event()
    first, second = (asyncio.create_task(shelf.uris()) for _ in range(2))
    await until(lambda: shelf.server.asked)
    first.cancel()
    shelf.server.held.set()

    assert await second == ["x:1"]


@pytest.mark.parametrize(
    ("page", "promised", "later", "asked"),
    [
        ({}, True, 1e6, 1),
        ({}, False, UNPROMISED_SECONDS - 1, 1),
        ({}, False, UNPROMISED_SECONDS, 2),
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
async def test_a_list_keeps_as_long_as_its_server_says(
    page: dict[str, Any], promised: bool, later: float, asked: int
):
    shelf = Shelf(**page)
    await shelf.uris(promised=promised)
    shelf.clock.advance(later)
    await shelf.uris(promised=promised)

    assert len(shelf.server.asked) == asked


async def test_whoever_insists_asks_anew():
    shelf = Shelf()
    await shelf.uris()
    await shelf.uris(fresh=True)

    assert len(shelf.server.asked) == 2


async def test_whoever_insists_is_not_given_what_was_being_read_before():
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


async def test_a_change_told_during_a_reading_is_followed_by_another_one():
    shelf = Shelf()
    shelf.server.held = asyncio.Event()
    early = asyncio.create_task(shelf.uris())
    await until(lambda: shelf.server.asked)
    shelf.lists.changed(BOX)
    late = asyncio.create_task(shelf.uris())
    await until(lambda: len(shelf.server.asked) == 2)
    shelf.server.held.set()

    assert (await early, await late) == (["x:1"], ["x:1"])


async def test_a_server_that_does_not_know_the_method_has_an_empty_list_and_no_problem():
    """Many have resources, and no templates."""
    shelf = Shelf()
    shelf.server.error = RemoteError("box", -32601, "Method not found")

    assert await shelf.read() == ServerList((), (), is_whole=True)
    assert await shelf.read() == ServerList((), (), is_whole=True)
    assert shelf.server.asked == ["resources/list"], "it is an answer, and kept like one"


async def test_when_reading_fails_what_was_known_is_shown_and_said_to_be_old():
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
    def __init__(self) -> None:
        self.bus = EventBus()
        self.events = self.bus.listen()
        self.lists = Lists(FakeClock(), self.bus, 1.0)
        self.server = Server()

    async def event(self) -> Any:
        return await asyncio.wait_for(anext(self.events), 5)


@pytest.mark.requirement("LIF-2")
async def test_what_a_server_offers_is_read_ahead_when_it_is_connected():
    room = Room()
    room.lists.opened(BOX, room.server, {"resources": {}, "prompts": {}, "tools": {}})
    found = [await room.event(), await room.event()]

    assert ResourcesChanged(server="box", resource_count=1, template_count=0) in found
    assert PromptsChanged(server="box", prompt_count=1) in found
    assert sorted(room.server.asked) == ["prompts/list", "resources/list", "resources/templates/list"]


async def test_that_a_server_has_nothing_is_no_news_unless_it_had_something():
    room = Room()
    room.server.page["resources"] = []
    room.lists.opened(BOX, room.server, {"resources": {}})
    await until(lambda: not room.lists._ahead)
    room.server.page["resources"] = [{"uri": "x:1"}]
    room.lists.noticed(BOX, room.server, "notifications/resources/list_changed", TELLS)
    assert (await room.event()).resource_count == 1
    room.server.page["resources"] = []
    room.lists.noticed(BOX, room.server, "notifications/resources/list_changed", TELLS)
    assert (await room.event()).resource_count == 0


@pytest.mark.parametrize("capabilities", [{}, {"tools": {}}, {"resources": True, "prompts": None}], ids=str)
async def test_a_server_that_offers_nothing_is_not_asked(capabilities: dict[str, Any]):
    room = Room()
    room.lists.opened(BOX, room.server, capabilities)
    room.lists.noticed(BOX, room.server, "notifications/prompts/list_changed", capabilities)
    await asyncio.sleep(0)

    assert room.server.asked == []


@pytest.mark.requirement("LIF-2")
async def test_a_burst_of_changes_is_read_once_or_twice(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.001)
    room = Room()
    for _ in range(500):
        room.lists.noticed(BOX, room.server, "notifications/prompts/list_changed", TELLS)
    await room.event()
    await until(lambda: not room.lists._ahead)

    assert 1 <= room.server.asked.count("prompts/list") <= 2
    assert "resources/list" not in room.server.asked, "only the list that changed is read"


async def test_a_server_that_changes_its_list_all_the_time_is_read_with_pauses(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.05)
    room = Room()

    class Restless(Server):
        async def request(self, *args: Any, **options: Any) -> Raw:
            if len(self.asked) < 3:
                room.lists.noticed(BOX, self, "notifications/prompts/list_changed", TELLS)
            return await super().request(*args, **options)

    began = asyncio.get_running_loop().time()
    server = Restless()
    room.lists.opened(BOX, server, {"prompts": {}})
    await until(lambda: not room.lists._ahead)

    assert server.asked == ["prompts/list"] * 4
    assert asyncio.get_running_loop().time() - began >= 3 * 0.05


async def test_nothing_is_left_of_a_server_that_has_gone():
    room = Room()
    room.lists.opened(BOX, room.server, {"prompts": {}})
    await room.event()
    assert room.lists.prompts.known(BOX, room.server) is not None
    room.lists.forget(BOX)

    assert room.lists.prompts.known(BOX, room.server) is None


async def test_between_two_readings_of_a_changing_list_there_is_half_a_second(
    monkeypatch: pytest.MonkeyPatch,
):
    pauses: list[float] = []
    sleep = asyncio.sleep
    room = Room()

    async def recorded(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    class Restless(Server):
        async def request(self, *args: Any, **options: Any) -> Raw:
            if len(self.asked) < 2:
                room.lists.noticed(BOX, self, "notifications/prompts/list_changed", TELLS)
            return await super().request(*args, **options)

    monkeypatch.setattr(module.asyncio, "sleep", recorded)
    server = Restless()
    room.lists.opened(BOX, server, {"prompts": {}})
    while room.lists._ahead:
        await sleep(0)
    assert server.asked == ["prompts/list"] * 3
    assert [seconds for seconds in pauses if seconds] == [0.5, 0.5]
