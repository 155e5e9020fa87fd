"""T462: a grant that is revoked while Redis does not answer ends at other replicas as soon as Redis
answers."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from dragoman.errors import StoreUnavailable
from dragoman.gateway import replicas as module
from dragoman.gateway.replicas import GrantsChanged, Replicas

pytestmark = pytest.mark.requirement("GWY-4")
KEY, OTHER = ("desk", "add", None, "ada"), ("desk", "remove", None, "ada")


class Shared:
    """The state that two replicas share: the grants, and the channel between them."""

    def __init__(self) -> None:
        self.grants: dict[str, bytes] = {}
        self.listening: list[Replicas] = []
        self.failures = {"set_grant": 0, "grants": 0, "publish": 0}
        """How many of the next commands of each kind fail."""

    def store(self, name: str) -> Any:
        async def set_grant(key: str, value: bytes | None) -> None:
            self._check("set_grant")
            self.grants.pop(key, None)
            self.grants |= {key: value} if value is not None else {}

        async def grants() -> list[bytes]:
            self._check("grants")
            return list(self.grants.values())

        async def publish(message: bytes, replica: str = "") -> int:
            self._check("publish")
            for each in self.listening:
                if each.name != name:
                    each._take(name, GrantsChanged())  # pyright: ignore[reportPrivateUsage]
            return 1

        return SimpleNamespace(replica=name, set_grant=set_grant, grants=grants, publish=publish)

    def _check(self, kind: str) -> None:
        if self.failures[kind]:
            self.failures[kind] -= 1
            raise StoreUnavailable("Redis", "TimeoutError")


def replica(shared: Shared, name: str, held: dict[Any, str]) -> tuple[Any, Callable[..., None]]:
    """A replica, and the callback by which it is notified of changes."""

    def replace_all(found: dict[Any, str]) -> None:
        held.clear()
        held.update(found)

    grants = SimpleNamespace(replace_all=replace_all, on_change=None)
    gateway: Any = SimpleNamespace(host=SimpleNamespace(servers={}, grants=lambda: grants))
    made = Replicas(gateway, shared.store(name))
    shared.listening.append(made)
    assert grants.on_change is not None
    return made, grants.on_change


async def idle(*replicas: Any) -> None:
    async with asyncio.timeout(10):
        while tasks := [task for each in replicas for task in each._tasks.values()]:
            await asyncio.wait(tasks)


@pytest.mark.parametrize("fails", ["set_grant", "grants", "publish"])
async def test_t462_a_revoked_grant_ends_everywhere(fails: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)
    shared, here, there = Shared(), {KEY: "digest"}, {KEY: "digest"}
    shared.grants[repr(KEY)] = msgspec.json.encode((KEY, "digest"))
    first, changed = replica(shared, "first", here)
    second, _ = replica(shared, "second", there)
    shared.failures[fails] = 3
    changed(KEY, None)
    await idle(first, second)
    assert shared.failures[fails] == 0
    assert there == {}


async def test_t462_a_grant_that_cannot_be_saved_does_not_delay_the_end_of_a_revoked_one(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)
    shared, here = Shared(), {KEY: "digest", OTHER: "digest"}
    first, changed = replica(shared, "first", here)
    shared.failures["set_grant"] = 10_000
    changed(OTHER, "digest")
    first._take("second", GrantsChanged())
    async with asyncio.timeout(10):
        while KEY in here:
            await asyncio.sleep(0)
    assert here == {OTHER: "digest"}
    shared.failures["set_grant"] = 0
    await idle(first)
    assert list(shared.grants) == [repr(OTHER)]
