"""T20: Whatever the network does, each call ends in time with a reply or an error, and the host closes."""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Self

import pytest

from dragoman import Host
from dragoman.errors import ConnectionLost, HostClosed, NotConnected
from tests.faults import FaultProxy
from tests.servers.web import Streamable, answers
from tests.torture.bystander_host import CLOSE_SECONDS, at_once
from tests.torture.network import (
    COMES_BACK,
    GRACE_SECONDS,
    LEGACY,
    LEGS,
    MODERN,
    AnyServer,
    Way,
    comes_back,
    end_of,
    facts,
)

Fault = Callable[[FaultProxy], None]
SECONDS = 3.0
"""The timeout of each call: enough for the slow faults, also on a busy machine."""

ONLY_SLOW: Mapping[str, Fault] = {
    "latency": lambda proxy: proxy.latency(0.05),
    "slices": lambda proxy: proxy.slicer(16),
    "slow close": lambda proxy: proxy.slow_close(30),
}
"""Faults that only take time: the call succeeds."""

SLOW: Mapping[str, Fault] = {"1 kB/s": lambda proxy: proxy.bandwidth(1000)}
"""Faults in which the call may be fast enough or not."""

ENDING_CALLS: Mapping[str, Fault] = {
    "latency beyond the deadline": lambda proxy: proxy.latency(30),
    "replies that are late": lambda proxy: proxy.down.latency(30),
    "a drip": lambda proxy: proxy.down.bandwidth(20),
    "a black hole": lambda proxy: proxy.black_hole(),
    "nothing comes back": lambda proxy: proxy.down.black_hole(),
    "reset at once": lambda proxy: proxy.up.reset_at(0),
    "closed at once": lambda proxy: proxy.up.close_at(0),
    "reset before the reply": lambda proxy: proxy.down.reset_at(0),
    "reset in the reply": lambda proxy: proxy.down.reset_at(60),
    "closed in the reply": lambda proxy: proxy.down.close_at(60),
    "refused": lambda proxy: (proxy.refuse(), proxy.cut_all())[0],
}
"""Faults that end a call with an error, in time."""


FAULTS = {**ONLY_SLOW, **SLOW, **ENDING_CALLS}
CASES = {f"s{number}": case for number, case in enumerate(itertools.product(LEGS, FAULTS))}
"""Every fault with every transport, by the name of a server."""
LIMITS = {"MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE": len(CASES)}


class Network:
    """A server for each transport, and in front of it a proxy for each fault."""

    def __init__(self) -> None:
        self.servers: list[AnyServer] = []
        self.proxies: dict[str, FaultProxy] = {}
        self.entries: dict[str, dict[str, Any]] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        servers = {leg: await self._stack.enter_async_context(leg.server()) for leg in LEGS}
        self.servers = [*servers.values()]
        for name, (leg, _) in CASES.items():
            proxy = await self._stack.enter_async_context(FaultProxy(servers[leg].port))
            self.proxies[name] = proxy
            self.entries[name] = leg.entry(servers[leg], proxy.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def break_down(self) -> None:
        for name, (_, fault) in CASES.items():
            FAULTS[fault](self.proxies[name])

    def mend(self) -> None:
        """As after a change of network: all faults end, and earlier connections are lost."""
        for proxy in self.proxies.values():
            proxy.heal()
            proxy.accept()
            proxy.cut_all()

    async def leave(self) -> None:
        """Descriptors opened here meanwhile are not leaks of the host."""
        for proxy in self.proxies.values():
            proxy.refuse()
        for server in self.servers:
            if isinstance(server, Streamable):
                await server.lose_sessions()


@pytest.mark.slow
@pytest.mark.requirement("LIF-5")
async def test_t20_every_call_ends_in_time_under_every_fault_and_the_server_reconnects(bystander_host):
    text = "x" * 100
    async with (
        Network() as network,
        bystander_host(others=network.entries, settings={**COMES_BACK, **LIMITS}) as a,
    ):
        network.break_down()
        ends = await asyncio.gather(
            *(end_of(a, "echo", server=name, seconds=SECONDS, text=text) for name in CASES)
        )
        network.mend()
        await asyncio.gather(*(comes_back(a, server=name) for name in CASES))
        await network.leave()
    for (leg, fault), ended in zip(CASES.values(), ends, strict=True):
        if fault in ONLY_SLOW or (fault in SLOW and isinstance(ended, str)):
            assert ended == text, f"{leg}: {fault}"
        else:
            assert facts(ended)[0] in ("timeout", "connection-lost", "not-connected"), f"{leg}: {fault}"


@pytest.mark.slow
@pytest.mark.requirement("LIF-3", "LIF-10")
async def test_t20_connecting_and_closing_end_in_time_under_every_fault():
    async with Network() as network:
        network.break_down()
        limits = {"MCP_TIMEOUT": 3000, "DRAGOMAN_RECONNECT_ATTEMPTS": 0, **LIMITS}
        host = Host(network.entries, settings=limits)
        async with at_once(3 + GRACE_SECONDS):
            await host.__aenter__()
            await host.ready(timeout=10)
        views = {name: host.servers[name] for name in CASES}
        async with at_once(CLOSE_SECONDS):
            await host.close()
    for name, (leg, fault) in CASES.items():
        view = views[name]
        if fault not in SLOW:
            wanted = "connected" if fault in ONLY_SLOW else "failed"
            assert view.status == wanted, f"{leg}: {fault}: {view.reason}"
        assert view.status == "connected" or view.reason, f"{leg}: {fault}"


@pytest.mark.slow
@pytest.mark.requirement("LIF-10")
async def test_t20_closing_in_the_middle_of_calls_ends_in_time_under_every_fault():
    async with Network() as network:
        settings = {**COMES_BACK, **LIMITS}
        host = Host(network.entries, settings=settings, permission_mode="bypassPermissions")
        await host.__aenter__()
        await host.ready(timeout=10)
        network.break_down()
        calls = [asyncio.create_task(host.call(f"mcp__{name}__hold", {})) for name in CASES]
        await asyncio.wait(calls, timeout=0.2)
        async with at_once(CLOSE_SECONDS):
            await host.close()
        ends = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(end) for end in ends} <= {ConnectionLost, NotConnected, HostClosed}


@pytest.mark.requirement("TRN-2", "TRN-3", "TRN-4")
@pytest.mark.parametrize("way", LEGS, ids=str)
async def test_t20_bytes_that_arrive_one_by_one_are_reassembled(bystander_host, way: Way):
    async with way.server() as server, FaultProxy(server.port) as proxy:
        proxy.slicer(1)
        async with bystander_host(way.entry(server, proxy.port)) as a:
            assert await end_of(a, "echo", text="é🐉" * 20, seconds=10) == "é🐉" * 20


@pytest.mark.slow
@pytest.mark.requirement("TRN-9")
async def test_t20_a_reply_that_arrives_byte_by_byte_does_not_extend_the_deadline(bystander_host):
    drips = {"json": answers.drip(0.01), "events": answers.drip(0.01, headers=answers.EVENTS)}
    async with AsyncExitStack() as stack:
        entries = {}
        for name, answer in drips.items():
            for era, way in {"legacy": Way("http", LEGACY), "modern": Way("http", MODERN)}.items():
                server = await stack.enter_async_context(way.server(on={"tools/call": answer}))
                entries[f"{name}-{era}"] = way.entry(server)
        a = await stack.enter_async_context(bystander_host(others=entries))
        ends = await asyncio.gather(*(end_of(a, "echo", server=name, seconds=SECONDS) for name in entries))
        assert {facts(end) for end in ends} == {("timeout", True)}
        assert {a.host.servers[name].status for name in entries} == {"connected"}


@pytest.mark.requirement("TRN-9")
async def test_t20_a_request_other_than_a_tool_call_has_its_own_timeout(bystander_host, era: str):
    way = Way("http", era)
    limits = {"MCP_REQUEST_TIMEOUT_MS": 500, "MCP_TIMEOUT": 3000}
    dripping = {"tools/list": answers.drip(0.01)}
    async with way.server(on=dripping) as server, bystander_host(way.entry(server), settings=limits) as a:
        assert a.view.status == "failed"
        assert "tools/list" in (a.view.reason or "")
