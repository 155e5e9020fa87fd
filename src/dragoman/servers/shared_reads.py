"""Resources that were read, shared by several hosts: what servers mark as valid for a time (`ttlMs`) and for
everyone (`cacheScope: public`).

A second level behind the `ReadCache` of each host. Each server has a fixed number of places, so that the
space is bounded. A version that changes with each report of a change makes everything before it invalid. A
store that does not answer is the same as one that has nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple
from zlib import crc32

import msgspec
from msgspec import Struct, structs

from dragoman.catalog.resources import ReadReply
from dragoman.errors import StoreUnavailable
from dragoman.servers.server import Server

PLACES: Final = 512
"""How many places there are for the resources of one server."""
LIMIT_BYTES: Final = 64 * 1024
"""The largest resource that is shared."""
LONGEST_SECONDS: Final = 3600.0
"""How long a resource is shared, at most."""
VERSION_SECONDS: Final = 2 * LONGEST_SECONDS
"""How long a version is stored: longer than any resource that was stored before it."""


class Found(NamedTuple):
    version: bytes
    stored: bytes | None
    seconds: float
    """How long it is still stored."""


class SharedStore(NamedTuple):
    """The store that the hosts share. Its functions raise `StoreUnavailable`."""

    get: Callable[[str, str], Awaitable[Found]]
    """By the keys of the version and of the resource."""
    put: Callable[[str, bytes, float], Awaitable[None]]
    announce: Callable[[str], Awaitable[object]]
    """Notifies the other hosts that resources of a server have changed."""


class _Stored(Struct):
    version: bytes
    uri: str
    reply: ReadReply


class SharedReads:
    def __init__(self, store: SharedStore) -> None:
        self._store = store

    async def get(self, server: Server, uri: str) -> tuple[ReadReply | None, bytes | None]:
        """What is stored and valid, for as long as it still is; and the version for `put`, None if there can
        be no `put`."""
        if server.config.transport.place != "remote":  # each host has a process of its own
            return None, None
        counts = server.reads.shared_counts
        try:
            await self.announce(server)
            found = await self._store.get(_version_key(server), _key(server, uri))
        except StoreUnavailable:
            counts["unavailable"] += 1
            return None, None
        is_current = server.reads.reported == server.reads.announced  # nothing was reported meanwhile
        reply = _reply_in(found, uri) if is_current else None
        counts["hit" if reply is not None else "miss"] += 1
        return reply, found.version

    async def put(self, server: Server, uri: str, reply: ReadReply, version: bytes) -> None:
        seconds = min(reply.ttl_seconds or 0.0, LONGEST_SECONDS)
        if not reply.is_public or not seconds or reply.size_bytes > LIMIT_BYTES:
            return
        data = _encoder.encode(_Stored(version, uri, reply))
        try:
            await self._store.put(_key(server, uri), data, seconds)
        except StoreUnavailable:
            pass

    async def announce(self, server: Server) -> bool:
        """Makes what is stored invalid if the server has reported a change that is not announced yet; whether
        it has."""
        reads = server.reads
        reported = reads.reported
        if reported == reads.announced or server.config.transport.place != "remote":
            return False
        await self._store.put(_version_key(server), secrets.token_bytes(8), VERSION_SECONDS)
        reads.announced = max(reads.announced, reported)
        reads.shared_counts["invalidated"] += 1
        await self._store.announce(server.name)
        return True


def _reply_in(found: Found, uri: str) -> ReadReply | None:
    if found.stored is None:
        return None
    try:
        stored = _decoder.decode(found.stored)
    except msgspec.MsgspecError:  # of another version of the program
        return None
    if stored.uri != uri or stored.version != found.version:
        return None
    return structs.replace(stored.reply, ttl_seconds=found.seconds)


def _version_key(server: Server) -> str:
    return f"reads {server.config.fingerprint()}"


def _key(server: Server, uri: str) -> str:
    return f"read {server.config.fingerprint()} {crc32(uri.encode()) % PLACES}"


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(_Stored)
