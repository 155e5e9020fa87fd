"""T641: a client watches very many resources of a server that reports very many changes. The work per
change does not depend on the number of watched resources, in the host and in the gateway."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw

from dragoman.connections.resource_subscriptions import ResourceSubscriptions
from dragoman.events import EventBus
from dragoman.wire.server.subscriptions import Subscriptions
from tests.cpu_time import CpuTimer, shortest

pytestmark = pytest.mark.requirement("CAT-9")

FEW, MANY = 10, 3_000
CHANGES = 300
TIMES_AS_LONG = 10
"""Comparing a change with each resource takes hundreds of times as long for many as for few."""


def uri(number: int) -> str:
    return f"file:///r/{number}"


def changed(count: int) -> list[str]:
    """URIs of sub-resources of the last few resources."""
    return [f"{uri(count - 1 - number % FEW)}/part" for number in range(CHANGES)]


async def of_a_host(count: int) -> float:
    subscriptions = ResourceSubscriptions(
        "x",
        EventBus(),
        missed=lambda: None,
        logged=lambda level, text: None,
        timeout_seconds=lambda: 1.0,
    )
    watched = [await subscriptions.add(uri(number)) for number in range(count)]
    changes = [Raw(json.dumps({"uri": each}).encode()) for each in changed(count)]

    def seconds() -> float:
        timer = CpuTimer()
        for change in changes:
            subscriptions.updated(change)
        return timer.seconds()

    took = shortest(seconds)
    assert [len(each._pending) for each in watched] == [0] * (count - FEW) + [1] * FEW
    return took


async def of_a_gateway(count: int) -> float:
    async def subscribe(request: Any) -> dict[str, Any]:
        return {}

    service: Any = SimpleNamespace(handlers={"resources/subscribe": subscribe})
    notified = list[Any]()
    subscriptions = Subscriptions(service, lambda method, params: notified.append(params))
    for number in range(count):
        await subscriptions.subscribe(Request(uri(number)))

    def seconds() -> float:
        notified.clear()
        timer = CpuTimer()
        for each in changed(count):
            subscriptions.resource_updated(each)
        return timer.seconds()

    took = shortest(seconds)
    assert notified == [{"uri": each} for each in changed(count)]
    return took


class Request:
    def __init__(self, uri: str) -> None:
        self.uri = uri

    def decode(self, kind: Any) -> Any:
        return kind(self.uri)

    def derive(self, method: str, params: Any) -> Any:
        return self


@pytest.mark.parametrize("measured", [of_a_host, of_a_gateway])
async def test_t641_a_change_is_not_compared_with_every_resource(measured: Any):
    assert await measured(MANY) < TIMES_AS_LONG * await measured(FEW)
