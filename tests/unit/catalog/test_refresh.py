"""When lists are read again: bursts merged, the last good list kept."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import Raw

from dragoman.catalog import refresh
from dragoman.catalog.pool import Catalog
from dragoman.catalog.refresh import Refresher
from dragoman.errors import CallTimeout
from dragoman.events import EventBus, ToolsChanged
from dragoman.names import ServerName
from dragoman.testing import FakeClock
from tests.integration.waiting import until

SERVER = ServerName("s")


class Asked:
    """A server's list that can be changed, held back or broken."""

    mirrors_arguments = False

    def __init__(self) -> None:
        self.readings = 0
        self.tools = ["a"]
        self.broken = False
        self.ttl_ms: int | None = None
        self.schema = "{}"
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def request(self, method: str, params: Mapping[str, Any] | None, *, timeout_seconds: float) -> Raw:
        assert (method, params, timeout_seconds) == ("tools/list", {}, 5.0)
        self.readings += 1
        await self.may_answer.wait()
        if self.broken:
            raise CallTimeout("s", method, timeout_seconds)
        tools = ",".join(f'{{"name":"{name}","inputSchema":{self.schema}}}' for name in self.tools)
        keeps = "" if self.ttl_ms is None else f',"ttlMs":{self.ttl_ms}'
        return Raw(f'{{"tools":[{tools}]{keeps}}}'.encode())


class Reading:
    def __init__(self) -> None:
        self.catalog = Catalog()
        self.bus = EventBus()
        self.events = self.bus.listen()
        self.clock = FakeClock()
        self.refresher = Refresher(self.catalog, self.bus, self.clock, timeout_seconds=5.0)
        self.asked = Asked()

    async def change(self) -> ToolsChanged:
        event = await asyncio.wait_for(anext(self.events), 5)
        assert isinstance(event, ToolsChanged)
        return event

    @property
    def names(self) -> list[str]:
        return [tool.wire_name for tool in self.catalog.tools()]


@pytest.fixture
async def reading() -> Reading:
    return Reading()


async def test_loading_fills_the_catalogue_and_tells(reading: Reading):
    await reading.refresher.load(SERVER, reading.asked)

    assert reading.names == ["a"]
    assert await reading.change() == ToolsChanged(server="s", tool_count=1)


async def test_a_failed_reading_keeps_the_last_good_list_and_says_why(reading: Reading):
    await reading.refresher.load(SERVER, reading.asked)
    await reading.change()
    reading.asked.broken = True
    await reading.refresher.load(SERVER, reading.asked)

    assert reading.names == ["a"]
    told = await reading.change()
    assert told.tool_count == 1
    assert "incomplete" in told.problems[0]
    assert reading.catalog.problems(SERVER) == told.problems


@pytest.mark.parametrize(("newer_fails", "names"), [(False, ["new"]), (True, ["old"])])
async def test_an_answer_that_comes_late_does_not_replace_a_newer_one(
    reading: Reading, newer_fails: bool, names: list[str]
):
    slow, quick = reading.asked, Asked()
    slow.tools, quick.tools, quick.broken = ["old"], ["new"], newer_fails
    slow.may_answer.clear()
    late = asyncio.create_task(reading.refresher.load(SERVER, slow))
    await until(lambda: slow.readings == 1)
    await reading.refresher.load(SERVER, quick)
    slow.may_answer.set()
    await late

    assert reading.names == names


async def test_what_is_being_read_of_a_server_that_goes_does_not_stay(reading: Reading):
    reading.asked.may_answer.clear()
    late = asyncio.create_task(reading.refresher.load(SERVER, reading.asked))
    await until(lambda: reading.asked.readings == 1)
    reading.refresher.forget(SERVER)
    reading.asked.may_answer.set()
    await late

    assert reading.names == []


async def test_a_server_that_goes_in_the_pause_between_two_readings_is_not_read_again(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
):
    reading.asked.may_answer.clear()
    reading.refresher.schedule(SERVER, reading.asked)
    await until(lambda: reading.asked.readings == 1)
    task = reading.refresher._running[SERVER]
    reading.refresher.schedule(SERVER, reading.asked)
    monkeypatch.setattr(refresh, "PAUSE_SECONDS", 0.01)
    reading.asked.may_answer.set()
    await reading.change()
    reading.refresher.forget(SERVER)
    await asyncio.wait_for(task, 5)

    assert reading.asked.readings == 1


async def test_a_list_that_became_empty_is_empty(reading: Reading):
    await reading.refresher.load(SERVER, reading.asked)
    reading.asked.tools = []
    await reading.refresher.load(SERVER, reading.asked)

    assert reading.names == []


async def test_a_burst_of_notices_is_one_reading_and_one_more(reading: Reading):
    reading.asked.may_answer.clear()
    for _ in range(100):
        reading.refresher.schedule(SERVER, reading.asked)
        await asyncio.sleep(0)
    reading.asked.tools = ["a", "b"]
    reading.asked.may_answer.set()
    await reading.change()
    await reading.change()
    for _ in range(5):
        await asyncio.sleep(0)

    assert reading.asked.readings == 2
    assert reading.names == ["a", "b"]


async def test_a_notice_after_a_reading_reads_again(reading: Reading):
    for tools in (["a"], ["b"]):
        reading.asked.tools = tools
        reading.refresher.schedule(SERVER, reading.asked)
        await reading.change()
        await asyncio.sleep(0)

    assert reading.names == ["b"]


@pytest.mark.requirement("CAT-11")
async def test_a_tool_that_became_another_is_named(reading: Reading):
    await reading.refresher.load(SERVER, reading.asked)
    await reading.change()
    reading.asked.schema = '{"type":"object","required":["x"]}'
    await reading.refresher.load(SERVER, reading.asked)

    assert (await reading.change()).changed == ("a",)


@pytest.mark.requirement("CAT-5")
@pytest.mark.parametrize(
    ("ttl_ms", "after_seconds", "readings"),
    [
        (None, 10**9, 1),
        (60_000, 59, 1),
        (60_000, 61, 2),
        (0, 29, 1),
        (0, 31, 2),
        (-5, 31, 2),
        (10**15, 24 * 3600 - 1, 1),
        (10**15, 24 * 3600 + 1, 2),
    ],
)
async def test_a_list_is_read_again_when_it_is_used_past_its_time(
    reading: Reading, ttl_ms: int | None, after_seconds: int, readings: int
):
    reading.asked.ttl_ms = ttl_ms
    await reading.refresher.load(SERVER, reading.asked)
    reading.clock.advance(after_seconds)
    for _ in range(3):
        reading.refresher.freshen(SERVER, reading.asked)
    for _ in range(10):
        await asyncio.sleep(0)

    assert reading.asked.readings == readings


async def test_closing_ends_what_is_under_way(reading: Reading):
    reading.asked.may_answer.clear()
    reading.refresher.schedule(SERVER, reading.asked)
    await asyncio.sleep(0)
    reading.refresher.close()
    await asyncio.sleep(0)
    reading.asked.may_answer.set()
    for _ in range(5):
        await asyncio.sleep(0)

    assert reading.names == []


async def test_between_two_readings_after_change_notices_there_is_half_a_second(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
):
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def recorded(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    class Restless(Asked):
        async def request(self, *args: Any, **options: Any) -> Raw:
            if self.readings < 2:
                reading.refresher.schedule(SERVER, self)
            return await super().request(*args, **options)

    monkeypatch.setattr(refresh.asyncio, "sleep", recorded)
    server = Restless()
    reading.refresher.schedule(SERVER, server)
    while reading.refresher._running:
        await sleep(0)
    assert server.readings == 3
    assert [seconds for seconds in pauses if seconds] == [0.5, 0.5]
