"""Secrets in memory, for tests and for programs that store nothing."""

from __future__ import annotations


class MemoryStore:
    description = "in memory, until the program ends"

    def __init__(self) -> None:
        self._secrets: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        return self._secrets.get(key)

    def put(self, key: str, secret: bytes) -> None:
        self._secrets[key] = secret

    def delete(self, key: str) -> None:
        self._secrets.pop(key, None)
