"""A buffer for the newest bytes of a server's stderr. Appending is cheap and never fails."""

from __future__ import annotations

from collections import deque


class ByteRing:
    def __init__(self, capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self.total_bytes = 0
        """Everything ever appended, kept or not."""

    def append(self, data: bytes) -> None:
        self.total_bytes += len(data)
        self._chunks.append(data[-self._capacity_bytes :])
        self._size += len(self._chunks[-1])
        while self._size > self._capacity_bytes:
            oldest = self._chunks.popleft()
            surplus = self._size - self._capacity_bytes
            self._size -= len(oldest)
            if surplus < len(oldest):
                self._chunks.appendleft(oldest[surplus:])
                self._size += len(oldest) - surplus

    def __len__(self) -> int:
        return self._size

    def tail(self, limit_bytes: int) -> bytes:
        picked: list[bytes] = []
        missing = limit_bytes
        for chunk in reversed(self._chunks):
            if missing <= 0:
                break
            picked.append(chunk[-missing:])
            missing -= len(picked[-1])
        return b"".join(reversed(picked))
