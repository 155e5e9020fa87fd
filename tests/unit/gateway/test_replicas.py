"""What replicas send to one another."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.gateway.access import LOCAL
from dragoman.gateway.replicas import Replicas


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
