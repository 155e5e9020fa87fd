"""When lists are read again: bursts merged, the last good list kept."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import Raw

from dragoman.catalog.listing import ToolList
from dragoman.content.redact import Redactor
from dragoman.errors import CallTimeout, RemoteError
from dragoman.names import ServerName
from dragoman.servers import lists
from dragoman.servers.lists import RESOURCES, TOOLS, BackgroundReading, ListContext, ListReader
from dragoman.settings import Settings
from dragoman.testing import FakeClock
from tests.integration.waiting import until

SERVER = ServerName("s")


class Asked:
    """A server's list that can be changed, held back or broken."""

    mirrors_arguments = False
    server = "s"

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
    """The list of tools of one server."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.stored: list[ToolList] = []
        settings = Settings({"MCP_REQUEST_TIMEOUT_MS": 5_000}, {})
        context = ListContext(SERVER, settings, self.clock, Redactor(()))
        self.reader = ListReader(TOOLS, context, self.stored.append)
        self.background = BackgroundReading((self.reader,))
        self.asked = Asked()

    async def load(self, asked: Any = None) -> None:
        await self.reader.get(asked or self.asked, fresh=True)

    def change(self, asked: Any = None) -> None:
        self.background.changed(asked or self.asked)

    async def until_stored(self, count: int) -> ToolList:
        await until(lambda: len(self.stored) >= count)
        return self.stored[-1]

    @property
    def names(self) -> list[str]:
        return [] if self.reader.known is None else [tool.name for tool in self.reader.known.items]


@pytest.fixture
async def reading() -> Reading:
    return Reading()


async def test_a_list_that_was_read_is_kept_and_reported(reading: Reading):
    await reading.load()

    assert reading.names == ["a"]
    assert [len(listing.items) for listing in reading.stored] == [1]


async def test_a_failed_request_keeps_the_last_list_and_gives_the_reason(reading: Reading):
    await reading.load()
    reading.asked.broken = True
    await reading.load()

    assert reading.names == ["a"]
    assert reading.reader.known is reading.stored[-1]
    assert "incomplete" in reading.stored[-1].problems[0]
    assert reading.stored[-1].problems[1:] == ("what was known before is shown",)


@pytest.mark.parametrize(("newer_fails", "names"), [(False, ["new"]), (True, ["old"])])
async def test_a_late_answer_does_not_replace_a_newer_one(
    reading: Reading, newer_fails: bool, names: list[str]
):
    slow, quick = reading.asked, Asked()
    slow.tools, quick.tools, quick.broken = ["old"], ["new"], newer_fails
    slow.may_answer.clear()
    late = asyncio.create_task(reading.load(slow))
    await until(lambda: slow.readings == 1)
    await reading.load(quick)
    slow.may_answer.set()
    await late

    assert reading.names == names


async def test_a_list_being_read_when_its_server_is_removed_is_dropped(reading: Reading):
    reading.asked.may_answer.clear()
    late = asyncio.create_task(reading.load())
    await until(lambda: reading.asked.readings == 1)
    reading.reader.forget()
    reading.asked.may_answer.set()
    await late

    assert reading.names == []


async def test_a_server_removed_between_two_requests_is_not_read_again(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
):
    reading.asked.may_answer.clear()
    reading.change()
    await until(lambda: reading.asked.readings == 1)
    reading.change()
    monkeypatch.setattr(lists, "PAUSE_SECONDS", 0.01)
    reading.asked.may_answer.set()
    await reading.until_stored(1)
    reading.background.stop()
    await asyncio.sleep(0.05)

    assert reading.asked.readings == 1
    assert not reading.background.is_running


async def test_a_list_that_became_empty_is_empty(reading: Reading):
    await reading.load()
    reading.asked.tools = []
    await reading.load()

    assert reading.names == []


async def test_a_burst_of_notifications_causes_one_request_and_one_more(reading: Reading):
    reading.asked.may_answer.clear()
    for _ in range(100):
        reading.change()
        await asyncio.sleep(0)
    reading.asked.tools = ["a", "b"]
    reading.asked.may_answer.set()
    await reading.until_stored(2)
    for _ in range(5):
        await asyncio.sleep(0)

    assert reading.asked.readings == 2
    assert reading.names == ["a", "b"]


async def test_a_notification_after_a_request_causes_another(reading: Reading):
    for number, tools in enumerate((["a"], ["b"]), 1):
        reading.asked.tools = tools
        reading.change()
        await reading.until_stored(number)
        await until(lambda: not reading.background.is_running)

    assert reading.names == ["b"]


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
async def test_a_list_is_read_again_when_it_is_used_after_its_ttl(
    reading: Reading, ttl_ms: int | None, after_seconds: int, readings: int
):
    reading.asked.ttl_ms = ttl_ms
    await reading.load()
    reading.clock.advance(after_seconds)
    for _ in range(3):
        if reading.reader.is_overdue():
            reading.change()
    for _ in range(10):
        await asyncio.sleep(0)

    assert reading.asked.readings == readings


async def test_closing_ends_running_requests(reading: Reading):
    reading.asked.may_answer.clear()
    reading.change()
    await asyncio.sleep(0)
    reading.background.stop()
    reading.reader.forget()
    await asyncio.sleep(0)
    reading.asked.may_answer.set()
    for _ in range(5):
        await asyncio.sleep(0)

    assert reading.names == []


async def test_two_requests_after_change_notifications_are_half_a_second_apart(
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
                reading.change(self)
            return await super().request(*args, **options)

    monkeypatch.setattr(lists.asyncio, "sleep", recorded)
    server = Restless()
    reading.change(server)
    while reading.background.is_running:
        await sleep(0)
    assert server.readings == 3
    assert [seconds for seconds in pauses if seconds] == [0.5, 0.5]


async def test_a_change_notification_at_the_end_of_a_request_is_not_lost(reading: Reading):
    loop, told = asyncio.get_running_loop(), []

    def news() -> None:
        if not told:
            told.append(1)
            # It runs after the last step of the reading, and before the end of its task is noticed.
            loop.call_soon(loop.call_soon, reading.change)

    reading.background = BackgroundReading((reading.reader,), news)
    reading.change()
    await until(lambda: reading.asked.readings == 2)


async def test_a_secret_repeated_by_an_error_does_not_appear_in_the_problems(reading: Reading):
    settings = Settings({}, {})
    context = ListContext(SERVER, settings, reading.clock, Redactor(("hunter2-hunter2",)))

    class Telling(Asked):
        async def request(self, *args: Any, **options: Any) -> Raw:
            raise RemoteError("s", -1, "bad token hunter2-hunter2")

    for kind in (TOOLS, RESOURCES):
        listing = await ListReader(kind, context).get(Telling())  # type: ignore[arg-type]
        assert "hunter2" not in str(listing.problems)
        assert "[secret]" in str(listing.problems)
