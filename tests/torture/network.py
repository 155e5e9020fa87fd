"""Servers over the network for torture tests: every transport, and calls that must end.

Contains the variants (transport × era × form of replies), the entries for them, and the check that a call
ended in time, with a reply or with an error that states what is known.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Literal

from dragoman import DragomanError
from tests.servers.web import HttpSse, Site, Streamable, WebSocketSite, http_sse, streamable, websocket
from tests.torture.bystander_host import HOSTILE, BystanderHost, until

LEGACY, MODERN = "2025-11-25", "2026-07-28"
GRACE_SECONDS = 4.0
"""How late a call may end on a busy machine; without a deadline it would last 10 s longer."""
COMES_BACK = {
    "DRAGOMAN_RECONNECT_ATTEMPTS": 100_000,
    "DRAGOMAN_RECONNECT_WAIT_MS": 1,
    "DRAGOMAN_RECONNECT_LONGEST_WAIT_MS": 2,
}
"""Settings with which a lost connection is reconnected at once, any number of times."""

AnyServer = Streamable | HttpSse | WebSocketSite


@dataclass(frozen=True)
class Way:
    """One variant: transport, era and form of replies."""

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
        """The entry for a host; `port`: the port of a proxy in front of the server."""
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
"""One of each kind, for tests in which all of them would take too long."""


async def end_of(
    bystander_host: BystanderHost,
    tool: str,
    *,
    server: str = HOSTILE,
    seconds: float = 5.0,
    raw: bool = False,
    **arguments: Any,
) -> str | DragomanError:
    """The outcome of a call. Anything but a text or a DragomanError, or a late end, fails the test."""
    started = time.monotonic()
    try:
        async with asyncio.timeout(seconds + 10):
            outcome = await bystander_host.host.call(
                f"mcp__{server}__{tool}", arguments, timeout_seconds=seconds, raw=raw
            )
        ended: str | DragomanError = outcome.text
    except DragomanError as error:
        ended = error
    took = time.monotonic() - started
    assert took < seconds + GRACE_SECONDS, f"{took:.2f} s instead of {seconds} s, then {ended!r}"
    return ended


async def serves(bystander_host: BystanderHost, *, server: str = HOSTILE, seconds: float = 10.0) -> None:
    """The server is connected, or reconnects automatically, and answers."""
    await connected(bystander_host, server=server, seconds=seconds)
    assert await end_of(bystander_host, "echo", server=server, text="still there?") == "still there?"


async def comes_back(bystander_host: BystanderHost, *, server: str = HOSTILE, seconds: float = 10.0) -> None:
    """Eventually a call succeeds; until then, each call ends in time."""
    deadline = time.monotonic() + seconds
    while (
        ended := await end_of(bystander_host, "echo", server=server, seconds=2.0, text="back?")
    ) != "back?":
        assert time.monotonic() < deadline, f"{server} is not back: {ended!r}"
        await asyncio.sleep(0.01)


async def connected(bystander_host: BystanderHost, *, server: str = HOSTILE, seconds: float = 10.0) -> None:
    if bystander_host.host.servers[server].status != "connected":
        await until(lambda: bystander_host.host.servers[server].status == "connected", seconds)


def facts(error: object) -> tuple[str, bool | None]:
    """An error's code, and whether it states that the request may have run."""
    assert isinstance(error, DragomanError), f"{error!r} is no error"
    return error.code, getattr(error, "may_have_run", None)
