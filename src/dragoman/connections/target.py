"""Describes a connection: how one server is reached, and what all connections of a host share (the limit of
connection attempts at the same time, the remembered eras of servers).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman import events, paths
from dragoman.atomic_write import write_cache
from dragoman.clock import Clock
from dragoman.config.file_reading import read_bytes
from dragoman.connections.factory import MakeTransport
from dragoman.connections.reachability import TcpProbe
from dragoman.errors import ConfigFileError
from dragoman.settings import Settings
from dragoman.transport_types import Place
from dragoman.version import VERSION
from dragoman.wire.codec import DECODE_ERRORS

KEPT_SECONDS: Final = 7 * 24 * 3600
KEPT_VERDICTS: Final = 500


class EraVerdict(msgspec.Struct, frozen=True):
    era: str
    at: float


class EraMemory:
    def __init__(self, clock: Clock, folder: Callable[[], Path] = paths.state_dir) -> None:
        self._clock = clock
        self._path = folder() / "eras.json"
        self._verdicts: dict[str, EraVerdict] | None = None
        self._until_end: dict[str, str] = {}
        """Verdicts that apply until this host ends."""

    def recall(self, fingerprint: str) -> str | None:
        if fingerprint in self._until_end:
            return self._until_end[fingerprint]
        verdict = self._load().get(fingerprint)
        fresh = verdict is not None and 0 <= self._clock.now() - verdict.at < KEPT_SECONDS
        return verdict.era if verdict is not None and fresh else None

    def remember(self, fingerprint: str, era: str, *, until_end: bool = False) -> None:
        """`until_end`: for as long as this host, and not in the file."""
        if self.recall(fingerprint) == era:
            return
        self._until_end.pop(fingerprint, None)
        if until_end:
            self._until_end[fingerprint] = era
            return
        # Read again: another host may have written since.
        self._verdicts = None
        verdicts = self._load()
        verdicts.pop(fingerprint, None)
        verdicts[fingerprint] = EraVerdict(era, self._clock.now())
        while len(verdicts) > KEPT_VERDICTS:
            del verdicts[next(iter(verdicts))]
        self._save(verdicts)

    def forget(self, fingerprint: str) -> None:
        self._until_end.pop(fingerprint, None)
        self._verdicts = None
        verdicts = self._load()
        if verdicts.pop(fingerprint, None) is not None:
            self._save(verdicts)

    def _load(self) -> dict[str, EraVerdict]:
        if self._verdicts is None:
            self._verdicts = {}
            with contextlib.suppress(ConfigFileError, *DECODE_ERRORS):
                if data := read_bytes(self._path):
                    self._verdicts = msgspec.json.decode(data, type=dict[str, EraVerdict])
        return self._verdicts

    def _save(self, verdicts: dict[str, EraVerdict]) -> None:
        write_cache(self._path, msgspec.json.encode(verdicts))


SLOT_SECONDS: Final = 1.0


class ConnectLimiter:
    def __init__(self, local: int, remote: int) -> None:
        self._free = {"local": asyncio.Semaphore(local), "remote": asyncio.Semaphore(remote)}

    @asynccontextmanager
    async def slot(self, place: Place) -> AsyncGenerator[None]:
        """Waits for a free slot; a server in this process needs none."""
        free = self._free.get(place)
        if free is None:
            yield
            return
        await free.acquire()
        is_held = True

        def release() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                free.release()

        timer = asyncio.get_running_loop().call_later(SLOT_SECONDS, release)
        try:
            yield
        finally:
            timer.cancel()
            release()


class ConnectionContext(Struct, frozen=True):
    """What the connections of a host share."""

    settings: Settings
    clock: Clock
    bus: events.EventBus
    eras: EraMemory
    client_info: Mapping[str, Any]
    limiter: ConnectLimiter
    extensions: Mapping[str, Any] = {}
    """Extensions of the protocol that the program supports, with their settings; declared to every server."""

    @staticmethod
    def of(
        settings: Settings, clock: Clock, bus: events.EventBus, extensions: Mapping[str, Any] | None = None
    ) -> ConnectionContext:
        """The context of a new host."""
        limiter = ConnectLimiter(
            settings["MCP_SERVER_CONNECTION_BATCH_SIZE"], settings["MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE"]
        )
        client_info = {"name": "dragoman", "version": VERSION}
        return ConnectionContext(
            settings, clock, bus, EraMemory(clock), client_info, limiter, extensions or {}
        )


class ConnectionTarget(Struct, frozen=True, kw_only=True):
    """How one server is reached, and when its connection is open."""

    make_transport: MakeTransport
    older_transport: MakeTransport | None = None
    """The transport before Streamable HTTP, for a server that was never updated."""
    protocol: str
    fingerprint: str | None = None
    """Names the entry in the memory of eras; None: nothing is remembered of it."""
    place: Place = "in-process"
    probe: TcpProbe | None = None
    """Finds out cheaply whether an unreachable server is back."""
    wait_for_sign_in: Callable[[], Awaitable[None]] | None = None
    """Returns when a sign-in was made outside this host, while the server waits for one."""
    idle_seconds: float | None = None
    """It is stopped when not used for that long, and started at the next use."""
    starts_on_use: bool = False
    """It is not started before its first use."""
