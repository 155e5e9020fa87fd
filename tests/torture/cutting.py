"""Calls whose connection is cut at every byte: servers behind fault proxies, in parallel, and the check
of the outcomes. Contains the lanes, each a server behind its own proxy, and the run counter they
share. The test decides which bytes are cut, and in which direction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Literal

from dragoman import DragomanError
from dragoman.errors import CallTimeout, ConnectionLost
from tests.faults import FaultProxy
from tests.servers.web import Ask, HttpSse, Ledger
from tests.torture.bystander_host import BystanderHost, until
from tests.torture.network import COMES_BACK, AnyServer, Way, connected, end_of

Direction = Literal["up", "down"]
LANES = 8
"""How many servers are cut in parallel."""
SLACK_BYTES = 4
"""Requests and replies differ in length by the digits of their ids."""


class Lane:
    """One server behind one proxy; its calls are cut one after the other."""

    def __init__(
        self, name: str, bystander_host: BystanderHost, proxy: FaultProxy, server: AnyServer
    ) -> None:
        self.name = name
        self._arena = bystander_host
        self._proxy = proxy
        self._number = 0
        self._server = server
        self._replied: asyncio.Event | None = None
        """If the acceptance of a message waits for this, the stream sends first."""
        self.ended: dict[str, str | DragomanError] = {}
        """The outcome of each call, by its key."""
        self.cut: dict[int, str | DragomanError] = {}
        """The outcomes of the calls that were cut, by the offset."""

    async def length(self, direction: Direction) -> int:
        """How many bytes a complete call takes."""
        if direction == "down" and isinstance(self._server, HttpSse):
            self._let_the_stream_speak_first(self._server)
        leg = getattr(self._proxy, direction)
        before = leg.bytes
        assert await self.call() == "1"
        return leg.bytes - before

    async def cut_at(self, direction: Direction, offsets: Iterable[int]) -> None:
        """One call for each offset; connections end by RST and by FIN alternately."""
        leg = getattr(self._proxy, direction)
        for turn, offset in enumerate(offsets):
            await connected(self._arena, server=self.name)
            (leg.reset_at if turn % 2 else leg.close_at)(offset, times=1)
            self.cut[offset] = await self.call()
            self._proxy.heal()

    async def call(self) -> str | DragomanError:
        self._number += 1
        key = f"{self.name} {self._number:04d}"
        self.ended[key] = ended = await end_of(self._arena, "ledger", server=self.name, key=key, seconds=10)
        if self._replied is not None:
            before = self._proxy.down.bytes
            self._replied.set()
            await until(lambda: self._proxy.down.bytes > before)
            self._replied.clear()
        return ended

    def _let_the_stream_speak_first(self, server: HttpSse) -> None:
        # The proxy cuts the connection that first has this many bytes: it should be the one with the reply.
        self._replied = replied = asyncio.Event()

        async def answer(ask: Ask) -> Any:
            taken = server._take(ask)
            await replied.wait()
            return taken

        server.on["tools/call"] = answer


class Lanes:
    def __init__(self, lanes: list[Lane], ledger: Ledger) -> None:
        self.lanes = lanes
        self.ledger = ledger

    async def cut_everywhere(self, direction: Direction, *, every: int = 1) -> None:
        """At every byte, or at every n-th."""
        whole = max([await lane.length(direction) for lane in self.lanes]) + SLACK_BYTES
        step = len(self.lanes) * every
        shares = [range(number * every, whole, step) for number in range(len(self.lanes))]
        await asyncio.gather(
            *(lane.cut_at(direction, share) for lane, share in zip(self.lanes, shares, strict=True))
        )

    def judge(self) -> None:
        """At most one run per call, and no call that ran is reported as unsent."""
        counts = self.ledger.counts
        assert max(counts.values()) == 1, [key for key, count in counts.items() if count > 1]
        ended = {key: end for lane in self.lanes for key, end in lane.ended.items()}
        for key, end in ended.items():
            if isinstance(end, str):
                assert (end, counts[key]) == ("1", 1)
                continue
            assert isinstance(end, ConnectionLost | CallTimeout), f"{key}: {end!r}"
            assert end.may_have_run or not counts[key], f"{key} ran, and is said not to have been sent"

    @property
    def cut(self) -> dict[int, str | DragomanError]:
        """The outcomes of the calls that were cut, by the offset."""
        return {offset: end for lane in self.lanes for offset, end in lane.cut.items()}

    @property
    def cuts_felt(self) -> int:
        return sum(isinstance(end, DragomanError) for lane in self.lanes for end in lane.ended.values())


@asynccontextmanager
async def lanes(
    bystander_host: Callable[..., BystanderHost], way: Way, *, count: int = LANES, **options: Any
) -> AsyncIterator[Lanes]:
    """`options` are the options of the servers."""
    ledger = Ledger()
    if way.type == "http":
        options = {"get_stream": False, **options}
    async with AsyncExitStack() as stack:
        parts: dict[str, tuple[FaultProxy, AnyServer]] = {}
        for number in range(count):
            server = await stack.enter_async_context(way.server(ledger=ledger, **options))
            parts[f"lane{number}"] = (await stack.enter_async_context(FaultProxy(server.port)), server)
        entries = {name: way.entry(server, proxy.port) for name, (proxy, server) in parts.items()}
        async with bystander_host(others=entries, settings=COMES_BACK) as a:
            yield Lanes([Lane(name, a, *part) for name, part in parts.items()], ledger)
