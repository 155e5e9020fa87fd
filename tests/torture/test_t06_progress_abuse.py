"""T06: Progress notifications do not keep a call alive past its deadline, fill a queue, or block the event
loop."""

import asyncio

import pytest

from dragoman.errors import CallTimeout
from dragoman.events import CallProgressed
from tests.servers import stdio_server
from tests.torture.bystander_host import MEGABYTE, at_once

KINDS = ["growing", "falling", "foreign", "unreadable", "wordy"]


@pytest.mark.parametrize("kind", KINDS)
async def test_t06_the_deadline_applies_during_any_flood_of_progress(bystander_host, era, kind):
    settings = {"DRAGOMAN_UNREQUESTED_MESSAGES_PER_SECOND": 1_000_000}
    async with bystander_host(stdio_server("floods_progress.py", protocol=era), settings=settings) as a:
        with pytest.raises(CallTimeout, match="hostile did not answer"):
            async with at_once(0.5 + 2):
                await a.call("report", kind=kind, count=0, seconds=0.5, on_progress=lambda _: None)
        assert a.pulse.growth_bytes < 64 * MEGABYTE


async def test_t06_a_slow_callback_gets_the_newest_progress_only(bystander_host, era):
    seen: list[float] = []

    async def watch(progress) -> None:
        seen.append(progress.progress)
        await asyncio.sleep(0.02)

    async with bystander_host(stdio_server("floods_progress.py", protocol=era)) as a:
        async with at_once(10):
            assert await a.call("report", kind="growing", count=20_000, on_progress=watch) == "done"
        assert seen == sorted(seen)
        assert len(seen) < 1_000
        assert seen[-1] == 20_000, "the last progress is not lost"


async def test_t06_progress_must_increase_and_must_have_the_token_of_the_request(bystander_host, era):
    async with bystander_host(stdio_server("floods_progress.py", protocol=era)) as a:
        for kind, last in {"growing": [100], "falling": [-1], "foreign": [], "unreadable": []}.items():
            seen: list[float] = []
            await a.call(
                "report", kind=kind, count=100, on_progress=lambda p, seen=seen: seen.append(p.progress)
            )
            assert seen[-1:] == last, kind
            assert seen == sorted(set(seen)), kind
        assert sum(a.view.ignored.values()) == 99 + 100 + 100


async def test_t06_progress_after_the_reply_is_dropped(bystander_host, era):
    seen: list[float] = []
    async with bystander_host(stdio_server("floods_progress.py", protocol=era)) as a:
        await a.call(
            "report",
            kind="growing",
            count=1000,
            answer_first=True,
            on_progress=lambda p: seen.append(p.progress),
        )
        await a.serves_still()
        assert seen == []
        assert sum(a.view.ignored.values()) == 1000


async def test_t06_a_very_long_progress_message_is_truncated(bystander_host, era):
    async with bystander_host(stdio_server("floods_progress.py", protocol=era)) as a:
        seen: list[str] = []
        await a.call("report", kind="wordy", count=5, on_progress=lambda p: seen.append(p.message))
        shown = [event.message or "" for event in a.happened(CallProgressed)]
        assert seen
        assert shown
        assert all(len(text) < 10_000 for text in [*seen, *shown])
