"""Decides which resource URIs are accepted from servers and sent to them. Pure.

A URI is sent back unchanged, so nothing in it is cleaned or repaired: one that cannot be shown in full is not
used.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from dragoman.cleaning import is_safe

URI_LIMIT: Final = 8192


def is_usable(uri: str) -> bool:
    """Whether the URI is short and has no invisible characters. Spaces are invalid, but common, and
    accepted."""
    return 0 < len(uri) <= URI_LIMIT and is_safe(uri) and "\n" not in uri and "\t" not in uri


class WatchedUris:
    """URIs of resources whose changes are wanted. Those that a changed resource belongs to are found without
    comparing it with each: a server may report very many changes."""

    def __init__(self) -> None:
        self._by_stem: dict[str, set[str]] = {}
        self._lengths: Counter[int] = Counter()
        """How many stems there are of each length."""

    def add(self, uri: str) -> None:
        stem = _stem(uri)
        if stem not in self._by_stem:
            self._by_stem[stem] = set()
            self._lengths[len(stem)] += 1
        self._by_stem[stem].add(uri)

    def discard(self, uri: str) -> None:
        stem = _stem(uri)
        uris = self._by_stem.get(stem, set())
        if uri not in uris:
            return
        uris.remove(uri)
        if not uris:
            del self._by_stem[stem]
            self._lengths[len(stem)] -= 1
            if not self._lengths[len(stem)]:
                del self._lengths[len(stem)]

    def found_for(self, uri: str) -> set[str]:
        """The URIs among these that are the changed resource itself, or one that it is a part of."""
        found = {uri} & self._by_stem.get(_stem(uri), set())
        for length in self._lengths:
            if length < len(uri) and uri[length] in "/?#":
                found |= self._by_stem.get(uri[:length], set())
        return found


def _stem(uri: str) -> str:
    return uri.rstrip("/")
