"""T391: the host names of an organisation's server list, or of the gateway's Redis, are never resolved."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.errors import StoreUnavailable
from dragoman.gateway.settings import StoreEntry
from dragoman.gateway.store import redis
from dragoman.gateway.store.redis import RedisStore

pytestmark = pytest.mark.requirement("LIF-10")
ROUNDS, AT_ONCE = 3, 16
"""Together more than the event loop has threads, on any machine."""

PROGRAM = """
import asyncio, pathlib, socket, sys, threading
from dragoman.config import connectors
from dragoman.config.schema import ConnectorsConfig

socket.getaddrinfo = lambda *_, **__: threading.Event().wait()
connectors.TIMEOUT_SECONDS = 0.2
config, path = ConnectorsConfig(url="https://nowhere.example/list"), pathlib.Path(sys.argv[1])
asyncio.run(connectors.refresh(path, config))
print(connectors.read_cache(path, config).problem)
"""


def test_t391_a_program_can_exit_while_the_host_name_of_the_list_is_resolved(tmp_path: Any):
    run = [sys.executable, "-c", PROGRAM, str(tmp_path / "connectors.json")]
    ended = subprocess.run(run, capture_output=True, timeout=50, check=False)
    assert b"no answer within 0.2 s" in ended.stdout, ended.stderr.decode()


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No name is resolved."""
    over = threading.Event()

    def getaddrinfo(*_: Any, **__: Any) -> Any:
        over.wait()
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield
    over.set()


@pytest.mark.usefixtures("silence")
async def test_t391_an_unresolved_redis_name_delays_nothing_else(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(redis, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(redis, "CONNECT_SECONDS", 0.2)
    store = RedisStore(StoreEntry(redis="redis://nowhere.example:6379/0", key="k" * 32))
    try:
        for _ in range(ROUNDS):
            with contextlib.suppress(StoreUnavailable):
                await asyncio.gather(*(store.get(str(number), 60) for number in range(AT_ONCE)))
        async with asyncio.timeout(20):
            assert await asyncio.to_thread(lambda: "free") == "free"
    finally:
        await store.close()
