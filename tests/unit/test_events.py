"""The bus: any number of listeners, each at its own pace, none in anybody's way."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from dragoman import events
from dragoman.events import (
    BACKLOG,
    CallEvent,
    CallStarted,
    Event,
    EventBus,
    EventsDropped,
    PermissionModeChanged,
    ServerLogged,
    ServerLost,
)
from tests.cpu_time import CpuTimer


def said(text: object) -> ServerLogged:
    return ServerLogged(server="s", level="info", text=str(text))


async def rest(bus: EventBus, listener: AsyncIterator[Event]) -> list[Event]:
    bus.close()
    return [event async for event in listener]


async def test_every_listener_gets_every_event_from_its_start():
    bus = EventBus()
    early = bus.listen()
    bus.publish(said(1))
    late = bus.listen()
    bus.publish(said(2))

    assert await rest(bus, early) == [said(1), said(2)]
    assert await rest(bus, late) == [said(2)]


async def test_a_listener_for_some_kinds_gets_only_these():
    bus = EventBus()
    some = bus.listen(ServerLogged, CallStarted)
    for event in (
        said(1),
        CallStarted(server="s", tool="t", call_id="c"),
        PermissionModeChanged(mode="plan", before="default"),
    ):
        bus.publish(event)
    assert await rest(bus, some) == [said(1), CallStarted(server="s", tool="t", call_id="c")]


@pytest.mark.parametrize(
    ("kinds", "has_calls"),
    [
        ((), True),
        ((Event,), True),
        ((CallStarted,), True),
        ((ServerLogged,), False),
        ((ServerLost, CallEvent), True),
    ],
)
def test_events_about_calls_are_created_only_for_their_listeners(
    kinds: tuple[type[Event], ...], has_calls: bool
):
    bus = EventBus()
    assert (bus.has_listeners, bus.has_call_listeners) == (False, False)
    listener = bus.listen(*kinds)
    assert (bus.has_listeners, bus.has_call_listeners) == (True, has_calls)
    bus.forget(listener)
    assert (bus.has_listeners, bus.has_call_listeners) == (False, False)


async def test_a_waiting_listener_gets_the_next_event():
    bus = EventBus()
    listener = bus.listen()
    waiting = asyncio.create_task(anext(listener))
    await asyncio.sleep(0)
    assert not waiting.done()

    bus.publish(said(1))
    assert await asyncio.wait_for(waiting, 1) == said(1)


async def test_a_slow_listener_loses_the_oldest_events_and_gets_their_number():
    bus = EventBus()
    slow = bus.listen()
    for number in range(BACKLOG + 7):
        bus.publish(said(number))

    first, *others = await rest(bus, slow)
    assert first == EventsDropped(count=7)
    assert others == [said(number) for number in range(7, BACKLOG + 7)]


async def test_a_slow_listener_does_not_affect_a_fast_one():
    bus = EventBus()
    bus.listen()
    quick = bus.listen()
    seen: list[Event] = []
    for number in range(BACKLOG + 7):
        bus.publish(said(number))
        seen.append(await anext(quick))

    assert seen == [said(number) for number in range(BACKLOG + 7)]


async def test_later_losses_are_reported_later():
    bus = EventBus()
    slow = bus.listen()
    for _ in range(2):
        for number in range(BACKLOG + 1):
            bus.publish(said(number))
        assert await anext(slow) == EventsDropped(count=1)
        while slow._waiting:  # type: ignore[attr-defined]
            await anext(slow)


async def test_closing_ends_every_iteration_after_what_was_published():
    bus = EventBus()
    listener = bus.listen()
    waiting = asyncio.create_task(anext(bus.listen()))
    await asyncio.sleep(0)
    bus.publish(said(1))
    bus.close()

    assert await waiting == said(1)
    assert [event async for event in listener] == [said(1)]
    assert not bus.has_listeners


async def test_closing_ends_a_waiting_iteration():
    bus = EventBus()
    waiting = asyncio.create_task(anext(bus.listen(), "the end"))
    await asyncio.sleep(0)
    bus.close()

    assert await asyncio.wait_for(waiting, 1) == "the end"


async def test_a_closed_bus_publishes_nothing():
    bus = EventBus()
    bus.close()
    bus.close()
    listener = bus.listen()
    bus.publish(said(1))

    assert [event async for event in listener] == []
    assert not bus.has_listeners


async def test_a_listener_that_ends_is_removed():
    bus = EventBus()
    listener = bus.listen()
    assert bus.has_listeners

    await listener.aclose()  # type: ignore[attr-defined]
    assert not bus.has_listeners
    assert [event async for event in listener] == []


async def test_publishing_without_listeners_is_fast():
    bus = EventBus()
    event = said(1)
    started = CpuTimer()
    for _ in range(100_000):
        bus.publish(event)

    assert started.seconds() < 1
    assert await rest(bus, bus.listen()) == []


KINDS = [
    kind
    for kind in vars(events).values()
    if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_event_is_a_frozen_value_that_can_be_written_as_json(kind: type[Event]):
    sample = {"str": "x", "int": 1, "float": 1.0, "bool": True}
    fields = {
        field.name: sample.get(str(getattr(field.type, "__name__", "")))
        for field in msgspec.structs.fields(kind)
        if field.required
    }
    event = kind(**fields)

    assert event == kind(**fields)
    assert msgspec.json.decode(msgspec.json.encode(event)).keys() >= fields.keys()
    for name in fields:
        with pytest.raises(AttributeError):
            setattr(event, name, None)
