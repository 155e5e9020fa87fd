"""What the gateway stores: the sessions of legacy clients, and the calls of each caller in the last minute.

`sqlite.py` is for one gateway and needs nothing else; `redis.py` is for several replicas. Only with several
there is more to share (grants, messages from one replica to another): that is in `RedisStore` alone.
"""

from __future__ import annotations

from typing import Final, Protocol

MINUTE_SECONDS: Final = 60.0


class GatewayStore(Protocol):
    """Methods raise `StoreUnavailable`. Values are bytes that only the gateway can read."""

    async def get(self, key: str, seconds: float) -> bytes | None:
        """The value, whose lifetime is extended to this many seconds; None if there is none."""
        ...

    async def put(self, key: str, value: bytes, seconds: float) -> None:
        """Stores the value for this many seconds."""
        ...

    async def delete(self, key: str) -> None: ...

    async def count_call(self, caller: str, limit: int) -> float:
        """Counts a call. Returns how many seconds the caller has to wait before the call may be made; 0 if it
        has made fewer than `limit` in the last minute."""
        ...

    async def close(self) -> None: ...
