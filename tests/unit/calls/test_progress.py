"""Progress on its way to a callback that may be slow or broken."""

import asyncio

import pytest

from dragoman.calls.progress import AT_ONCE, OnProgress, ProgressRelay
from dragoman.events import CallProgressed, EventBus, ServerLogged
from dragoman.wire.peer import Progress


def relay(callback: OnProgress | None, bus: EventBus | None = None) -> ProgressRelay:
    return ProgressRelay("box", "mcp__box__open", callback, bus or EventBus())


async def heard(bus: EventBus, listener: object) -> list[object]:
    bus.close()
    return [event async for event in listener]  # type: ignore[attr-defined]


@pytest.mark.requirement("CAL-3")
async def test_a_synchronous_callback_gets_the_first_steps_and_the_newest_at_a_limited_rate():
    seen: list[Progress] = []
    hand_on = relay(seen.append)
    for n in range(1000):
        hand_on(Progress(n))
    await hand_on.finish()

    assert seen == [*map(Progress, range(AT_ONCE)), Progress(999)]


async def test_a_delayed_step_is_reported_without_a_later_one():
    told = asyncio.Event()

    def see(progress: Progress) -> None:
        if progress.progress == AT_ONCE:
            told.set()

    hand_on = relay(see)
    for n in range(AT_ONCE + 1):
        hand_on(Progress(n))
    assert not told.is_set()
    async with asyncio.timeout(5):
        await told.wait()
    hand_on.stop()


async def test_steps_are_events():
    bus = EventBus()
    listener = bus.listen()
    hand_on = relay(None, bus)
    hand_on(Progress(1, 4, "reading"))
    hand_on(Progress(2))
    await hand_on.finish()

    assert await heard(bus, listener) == [
        CallProgressed(server="box", tool="mcp__box__open", progress=1, total=4, message="reading"),
        CallProgressed(server="box", tool="mcp__box__open", progress=2),
    ]


async def test_an_event_contains_no_terminal_sequences():
    bus = EventBus()
    listener = bus.listen()
    relay(None, bus)(Progress(1, None, "\x1b[2Jgone"))

    (event,) = await heard(bus, listener)
    assert isinstance(event, CallProgressed)
    assert "\x1b" not in (event.message or "")


async def test_a_callback_that_raises_is_reported_and_not_called_again():
    bus = EventBus()
    listener = bus.listen()
    calls = 0

    def broken(progress: Progress) -> None:
        nonlocal calls
        calls += 1
        raise RuntimeError("boom")

    hand_on = relay(broken, bus)
    hand_on(Progress(1))
    hand_on(Progress(2))
    await hand_on.finish()

    assert calls == 1
    (report,) = [event for event in await heard(bus, listener) if isinstance(event, ServerLogged)]
    assert report.level == "error"
    assert "RuntimeError: boom" in report.text


async def test_an_async_callback_that_raises_is_reported_and_not_called_again():
    bus = EventBus()
    listener = bus.listen()
    calls = 0

    async def broken(progress: Progress) -> None:
        nonlocal calls
        calls += 1
        raise RuntimeError("boom")

    hand_on = relay(broken, bus)
    hand_on(Progress(1))
    await hand_on.finish()
    hand_on(Progress(2))
    await hand_on.finish()

    assert calls == 1
    assert [type(event) for event in await heard(bus, listener)].count(ServerLogged) == 1


async def test_a_slow_async_callback_gets_the_first_and_the_newest():
    seen: list[float] = []
    go_on = asyncio.Event()

    async def slow(progress: Progress) -> None:
        seen.append(progress.progress)
        await go_on.wait()

    hand_on = relay(slow)
    for n in range(1000):
        hand_on(Progress(n))
        await asyncio.sleep(0)
    assert seen == [0]

    go_on.set()
    await hand_on.finish()
    assert seen == [0, 999]


async def test_a_fast_async_callback_gets_every_step():
    seen: list[float] = []

    async def quick(progress: Progress) -> None:
        seen.append(progress.progress)

    hand_on = relay(quick)
    for n in range(5):
        hand_on(Progress(n))
        await hand_on.finish()

    assert seen == [0, 1, 2, 3, 4]


async def test_the_end_waits_for_the_last_step():
    finished = False

    async def slow(progress: Progress) -> None:
        nonlocal finished
        await asyncio.sleep(0)
        finished = True

    hand_on = relay(slow)
    hand_on(Progress(1))
    await hand_on.finish()

    assert finished


@pytest.mark.parametrize("callback", [None, lambda progress: None])
async def test_waiting_for_callbacks_without_any_ends_at_once(callback: OnProgress | None):
    await relay(callback).finish()
