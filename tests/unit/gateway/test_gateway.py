"""The gateway's own tasks."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman.events import Event, ToolsChanged
from dragoman.gateway import app
from dragoman.gateway import gateway as module
from dragoman.gateway.access import with_token
from dragoman.gateway.app import HttpOptions, _HttpServer  # pyright: ignore[reportPrivateUsage]
from dragoman.testing import InMemoryServer
from tests.gateway import gateway_of

LONG_SECONDS = 1000.0


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_clients_are_not_notified_of_lists_once_the_reports_have_ended(
    is_cancelled: bool, monkeypatch: pytest.MonkeyPatch
):
    given, timers = asyncio.Event(), list[asyncio.TimerHandle]()
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def noted(delay: float, *arguments: Any, **options: Any) -> asyncio.TimerHandle:
        timer = call_later(delay, *arguments, **options)
        timers.extend([timer] * (delay == LONG_SECONDS))
        return timer

    async def events() -> AsyncIterator[Event]:
        yield ToolsChanged(server="desk", tool_count=1)
        given.set()
        if is_cancelled:
            await loop.create_future()

    async with gateway_of({"desk": InMemoryServer("desk")}) as running:
        monkeypatch.setattr(module, "PAUSE_SECONDS", LONG_SECONDS)
        monkeypatch.setattr(loop, "call_later", noted)
        gateway: Any = running.gateway
        reporting = asyncio.create_task(gateway._report(running.host, events()))
        await given.wait()
        reporting.cancel()
        await asyncio.wait([reporting])
    assert [timer.cancelled() for timer in timers] == [True]


async def test_the_cleanup_continues_after_a_failure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(app, "CLEANING_SECONDS", 0.0)
    reported, cleaned = list[str](), asyncio.Event()
    async with gateway_of({"desk": InMemoryServer("desk")}) as running:
        running.gateway.report = reported.append
        server = _HttpServer(running.gateway, HttpOptions(identify=with_token()))
        failures = iter([ValueError("secret")])

        async def end_idle() -> None:
            for failure in failures:
                raise failure
            cleaned.set()

        monkeypatch.setattr(server.sessions, "end_idle", end_idle)
        cleaning = asyncio.create_task(server.clean())
        async with asyncio.timeout(5):
            await asyncio.wait(
                [cleaning, waiting := asyncio.create_task(cleaned.wait())], return_when="FIRST_COMPLETED"
            )
        assert waiting.done()
        cleaning.cancel()
    assert reported == ["sessions that are not used were not ended: unexpected error ValueError"]
