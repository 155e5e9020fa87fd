"""Servers over the network as torture tests need them: every way to reach one, and calls that must end.

I own: the ways (transport × era × how replies come), the entries for them, and the judgement that a call
ended in time, in a reply or in an error that says what is known.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Literal

from dragoman import DragomanError
from tests.servers.web import HttpSse, Site, Streamable, WebSocketSite, http_sse, streamable, websocket
from tests.torture.arena import HOSTILE, Arena, until

LEGACY, MODERN = "2025-11-25", "2026-07-28"
GRACE_SECONDS = 4.0
"""How late a call may end on a busy machine; without a deadline it would last 10 s longer."""
COMES_BACK = {
    "DRAGOMAN_RECONNECT_ATTEMPTS": 100_000,
    "DRAGOMAN_RECONNECT_WAIT_MS": 1,
    "DRAGOMAN_RECONNECT_LONGEST_WAIT_MS": 2,
}
"""Settings with which a lost connection is back at once, however often."""

AnyServer = Streamable | HttpSse | WebSocketSite


@dataclass(frozen=True)
class Way:
    """One way to reach a server."""

    type: Literal["http", "sse", "ws"]
    revision: str = LEGACY
    replies: Literal["json", "sse"] = "sse"

    def server(self, **options: Any) -> AnyServer:
        """`async with way.server() as server`."""
        match self.type:
            case "http":
                return streamable(revisions=(self.revision,), replies=self.replies, **options)
            case "sse":
                return http_sse(**options)
            case "ws":
                return websocket(revisions=(self.revision,), **options)

    def entry(self, site: Site, port: int | None = None, **more: Any) -> dict[str, Any]:
        """What a host is given; `port`: that of a proxy in front."""
        url = site.url if port is None else site.url.replace(f":{site.port}/", f":{port}/")
        protocol = "2024-11-05" if self.type == "sse" else self.revision
        return {"type": self.type, "url": url, "protocol": protocol, **more}

    def __str__(self) -> str:
        era = "modern" if self.revision == MODERN else "legacy"
        return {"http": f"http-{era}-{self.replies}", "sse": "sse", "ws": f"ws-{era}"}[self.type]


HTTP_WAYS = tuple(
    Way("http", revision, replies) for revision in (LEGACY, MODERN) for replies in ("json", "sse")
)
WAYS = (*HTTP_WAYS, Way("sse"), Way("ws", LEGACY), Way("ws", MODERN))
LEGS = (Way("http", LEGACY, "sse"), Way("http", MODERN, "json"), Way("sse"), Way("ws", LEGACY))
"""One of each kind, where all of them would take too long."""


async def end_of(
    arena: Arena,
    tool: str,
    *,
    server: str = HOSTILE,
    seconds: float = 5.0,
    raw: bool = False,
    **arguments: Any,
) -> str | DragomanError:
    """What a call comes to. Anything but a text or an error of ours, or lateness, fails the test."""
    started = time.monotonic()
    try:
        async with asyncio.timeout(seconds + 10):
            outcome = await arena.host.call(
                f"mcp__{server}__{tool}", arguments, timeout_seconds=seconds, raw=raw
            )
        ended: str | DragomanError = outcome.text
    except DragomanError as error:
        ended = error
    took = time.monotonic() - started
    assert took < seconds + GRACE_SECONDS, f"{took:.2f} s instead of {seconds} s, then {ended!r}"
    return ended


async def serves(arena: Arena, *, server: str = HOSTILE, seconds: float = 10.0) -> None:
    """The server is connected, or comes back by itself, and answers."""
    await connected(arena, server=server, seconds=seconds)
    assert await end_of(arena, "echo", server=server, text="still there?") == "still there?"


async def comes_back(arena: Arena, *, server: str = HOSTILE, seconds: float = 10.0) -> None:
    """Sooner or later a call succeeds; until then, each ends in time."""
    deadline = time.monotonic() + seconds
    while (ended := await end_of(arena, "echo", server=server, seconds=2.0, text="back?")) != "back?":
        assert time.monotonic() < deadline, f"{server} is not back: {ended!r}"
        await asyncio.sleep(0.01)


async def connected(arena: Arena, *, server: str = HOSTILE, seconds: float = 10.0) -> None:
    if arena.host.servers[server].status != "connected":
        await until(lambda: arena.host.servers[server].status == "connected", seconds)


def facts(error: object) -> tuple[str, bool | None]:
    """An error's code, and whether it says that the request may have run."""
    assert isinstance(error, DragomanError), f"{error!r} is no error"
    return error.code, getattr(error, "may_have_run", None)
