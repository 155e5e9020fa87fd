"""T468: very many simultaneous calls do not exhaust file descriptors with requests of an HTTP hook."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web

from dragoman import Host
from dragoman.hooks.declared import Hook, HttpHook
from dragoman.hooks.http import REQUESTS_AT_ONCE
from dragoman.testing import InMemoryServer

pytestmark = pytest.mark.requirement("PRM-5")
DENY = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}


class Endpoint:
    """Answers after the maximum number of concurrent requests is waiting."""

    def __init__(self, answered_at: int) -> None:
        self._answered_at = answered_at
        self.waiting = self.most = self.count = 0
        self.full = asyncio.Event()

    async def answer(self, request: web.Request) -> web.Response:
        self.count += 1
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        if self.waiting == self._answered_at:
            self.full.set()
        await self.full.wait()
        self.waiting -= 1
        return web.Response(body=msgspec.json.encode(DENY), content_type="application/json")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        application = web.Application()
        application.router.add_post("/", self.answer)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
        finally:
            self.full.set()
            await runner.cleanup()


def host_with(url: str) -> Host:
    server = InMemoryServer("x")
    server.add_tool("echo", lambda arguments, context: "hi")
    hook = Hook(event="PreToolUse", what=HttpHook(url, ()), name="web", timeout_seconds=30)
    return Host({"x": server}, permission_mode="bypassPermissions", hooks=[hook])


async def test_t468_every_call_is_checked_with_a_limited_number_of_connections():
    endpoint = Endpoint(REQUESTS_AT_ONCE)
    async with asyncio.timeout(50), endpoint.running() as url, host_with(url) as host:
        await host.ready()
        outcomes = await asyncio.gather(*(host.call("mcp__x__echo") for _ in range(200)))
    assert {outcome.text.partition(":")[0] for outcome in outcomes} == {"mcp__x__echo was not allowed"}
    assert (endpoint.count, endpoint.most) == (200, REQUESTS_AT_ONCE)


async def test_t468_a_closing_host_sends_no_further_requests():
    endpoint = Endpoint(0)
    async with asyncio.timeout(50), endpoint.running() as url, host_with(url) as host:
        await host.ready()
        calls = [asyncio.create_task(host.call("mcp__x__echo")) for _ in range(100)]
        while endpoint.waiting < REQUESTS_AT_ONCE:
            await asyncio.sleep(0.01)
        await host.close()
        await asyncio.wait(calls)
        assert endpoint.count == REQUESTS_AT_ONCE
        assert not [call for call in calls if call.exception() is None and call.result().text == "hi"]
