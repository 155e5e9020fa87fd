"""What replicas send to one another."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.gateway.access import LOCAL
from dragoman.gateway.replicas import GrantsChanged, Replicas
from dragoman.gateway.store import accounts
from dragoman.gateway.store.accounts import SharedAccounts


async def test_a_request_whose_client_leaves_before_it_is_passed_on_is_forgotten():
    sending = asyncio.Event()

    async def publish(message: bytes, replica: str) -> int:
        sending.set()
        return await asyncio.get_running_loop().create_future()

    gateway: Any = SimpleNamespace(host=SimpleNamespace(servers={}, grants=SimpleNamespace))
    store: Any = SimpleNamespace(replica="this", publish=publish)
    replicas = Replicas(gateway, store)
    forwarding = asyncio.create_task(replicas.forward("other", LOCAL, "", b"{}", 1))
    await sending.wait()
    forwarding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await forwarding
    assert replicas._forwarded == {}  # pyright: ignore[reportPrivateUsage]


async def test_many_grants_while_the_store_is_slow_wait_in_one_task_and_are_all_saved():
    saved, answers = list[str](), asyncio.Event()

    async def set_grant(key: str, value: bytes | None) -> None:
        await answers.wait()
        saved.append(key)

    async def publish(message: bytes, replica: str) -> int:
        return 1

    grants: Any = SimpleNamespace(replace_all=lambda found: None)
    gateway: Any = SimpleNamespace(host=SimpleNamespace(servers={}, grants=lambda: grants))
    store: Any = SimpleNamespace(replica="this", publish=publish, set_grant=set_grant, grants=_no_grants)
    replicas: Any = Replicas(gateway, store)
    keys = [("ada", f"tool {number}") for number in range(100)]
    for key in keys:
        grants.on_change(key, "digest")
        replicas._take("other", GrantsChanged())
        await asyncio.sleep(0)
    assert len(replicas._tasks) == 1
    answers.set()
    await asyncio.gather(*replicas._tasks.values())
    assert sorted(saved) == sorted(map(repr, keys))
    grants.on_change(("ada", "later"), "digest")
    await asyncio.gather(*replicas._tasks.values())
    assert saved[-1] == repr(("ada", "later"))


async def _no_grants() -> list[bytes]:
    return []


def test_versions_of_accounts_are_limited_and_no_change_is_missed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(accounts, "VERSIONS_LIMIT", 3)
    unused: Any = None
    shared: Any = SharedAccounts(unused, unused, unused)
    first = shared.version("0")
    assert shared.version("0") == first
    for number in range(1, 10):
        shared.version(str(number))
        assert len(shared._versions) <= 3
    assert shared.version("0") != first
