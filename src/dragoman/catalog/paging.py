"""Reads lists page by page: of tools, resources, templates and prompts.

Covers the limits (pages, items, bytes), cursors, and the server's values for how long a list is valid. Items
are not interpreted. Reading always ends, and what came before an error is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

from msgspec import Raw, Struct, defstruct

from dragoman.cleaning import one_line
from dragoman.errors import DragomanError, RemoteError
from dragoman.protocol import METHOD_NOT_FOUND
from dragoman.surrogates import exactly
from dragoman.wire.codec import Unreadable, decode_as, split_as
from dragoman.wire.messages import ABSENT

PAGE_LIMIT: Final = 1000
ITEM_LIMIT: Final = 10_000
LIST_LIMIT_BYTES: Final = 64 * 1024 * 1024
LIST_LIMIT_COMMAS: Final = 1_000_000
DEFINITION_LIMIT_BYTES: Final = 256 * 1024
"""The largest definition of a tool, resource, template or prompt: a larger one would block the event loop
when it is read, and each time it is used."""
STEP_BYTES: Final = 64 * 1024
ITEM_COST_BYTES: Final = 512
LONGEST_TTL_SECONDS: Final = 24 * 3600.0

T = TypeVar("T")
_CURSOR: Any = str | None
_ANY: Any = Any
SCALAR_LIMIT_BYTES: Final = 1024
"""The maximum size of a scalar: a number or a keyword."""

FetchPage = Callable[[Mapping[str, Any]], Awaitable[Raw]]


class Listing(Struct, Generic[T], frozen=True):
    """One server's list of one kind, and the problems: items that were left out."""

    items: tuple[T, ...] = ()
    problems: tuple[str, ...] = ()
    is_whole: bool = True
    """Whether reading came to the list's end, or to a limit of ours."""
    ttl_seconds: float | None = None
    """How long it is valid, if the server states it."""
    failure: DragomanError | Unreadable | None = None
    """Why nothing at all could be read."""


class Pages(Struct, Generic[T]):
    """A list as it was read, and what was wrong with it."""

    items: list[T] = []
    problems: list[str] = []
    is_whole: bool = True
    """Whether reading came to the list's end, or to a limit of ours."""
    ttl_seconds: float | None = None
    """How long it is valid, if the server states it; 0 is "not at all"."""
    failure: DragomanError | Unreadable | None = None
    """Why nothing at all could be read. A server that does not know the method offers none."""


def undecoded(array: bytes) -> Sequence[Raw]:
    """The items of a page, each still encoded."""
    return split_as(list[Raw], array)


def definition_as(shape: type[T], raw: Raw) -> T:
    """An item of a list as a typed value; `Unreadable` if it is invalid or too large."""
    if memoryview(raw).nbytes > DEFINITION_LIMIT_BYTES:
        raise Unreadable(f"it is larger than {DEFINITION_LIMIT_BYTES} bytes")
    return decode_as(shape, raw)


class Steps:
    """Lets the event loop run while many items are processed."""

    def __init__(self) -> None:
        self._bytes = 0

    async def after(self, *items: Raw) -> None:
        self._bytes += sum(map(len, items)) + len(items) * ITEM_COST_BYTES
        if self._bytes > STEP_BYTES:
            self._bytes = 0
            await asyncio.sleep(0)


async def read_pages(
    fetch_page: FetchPage, key: str, what: str, split: Callable[[bytes], Sequence[T]]
) -> Pages[T]:
    """Reads all pages of a list. `key`: the member of a page that contains its items. `what`: the word for
    them in messages.

    `split`: splits a page's array, or returns `Unreadable`.
    """
    pages = Pages[T]()
    params: Mapping[str, Any] = {}
    cursors: set[str | bytes] = set()
    size = 0
    for _ in range(PAGE_LIMIT):
        try:
            result = await fetch_page(params)
            page = split_as(_page_type(key), result)
            array = _checked(page, key)
            size += len(array) + len(page.next_cursor)  # cursors are kept, too: to notice a circle
            if size > LIST_LIMIT_BYTES:
                raise Unreadable("it is too large")
            items = split(array)
        except (DragomanError, Unreadable) as error:
            if not params:
                pages.failure = error
                if isinstance(error, RemoteError) and error.remote_code == METHOD_NOT_FOUND:
                    return pages
            pages.problems.append(f"the list of {what} is incomplete: {error}")
            pages.is_whole = False
            return pages
        room = ITEM_LIMIT - len(pages.items)
        pages.items += items[:room]
        pages.ttl_seconds = _shorter(pages.ttl_seconds, page.ttl_ms)
        try:
            cursor = _cursor(result, page.next_cursor)
        except Unreadable:
            pages.problems.append(f"the list of {what} may be incomplete: its nextCursor is not a text")
            return pages
        if len(items) > room:
            pages.problems.append(f"more than {ITEM_LIMIT} {what}: the rest is left out")
            return pages
        if cursor is None:
            return pages
        seen = bytes(cursor) if isinstance(cursor, Raw) else cursor
        if seen in cursors:
            pages.problems.append(f"the list of {what} returned the same cursor twice: reading stopped")
            return pages
        cursors.add(seen)
        params = {"cursor": cursor}
    pages.problems.append(f"more than {PAGE_LIMIT} pages of {what}: the rest is left out")
    return pages


@lru_cache(maxsize=8)
def _page_type(key: str) -> Any:
    """The type of a page: the members that are read. Its items stay encoded."""
    fields = [
        ("items", Raw, ABSENT),
        ("next_cursor", Raw, ABSENT),
        ("result_type", Raw, ABSENT),
        ("ttl_ms", Raw, ABSENT),
    ]
    names = {"items": key, "next_cursor": "nextCursor", "result_type": "resultType", "ttl_ms": "ttlMs"}
    return defstruct("Page", fields, rename=names)


def _cursor(result: Raw, spelled: Raw) -> str | Raw | None:
    """The cursor of the next page; an empty string is a cursor too. None: it was the last page."""
    if spelled is ABSENT:
        return None
    cursor = decode_as(_CURSOR, spelled)
    exact = exactly(result, "nextCursor", spelled)
    return cursor if cursor is None or exact is spelled else exact


def _checked(page: Any, key: str) -> bytes:
    """The page's array, if it can be split in bounded time."""
    kind = scalar(page.result_type)
    if kind not in (None, "complete"):
        raise Unreadable(f"it came as {one_line(str(kind), 50)!r} instead of a list")
    if page.items is ABSENT:
        raise Unreadable(f"it has no {key!r}")
    array = bytes(page.items)
    # Counted first: a few megabytes of `0,0,0` would take longer to decode than a list may.
    if array.count(b",") > LIST_LIMIT_COMMAS:
        raise Unreadable("it is too large")
    return array


def scalar(raw: Raw) -> Any:
    """The decoded value of a small member; None if it is absent. For a member too large to be a scalar, a
    text that says so."""
    if raw is ABSENT:
        return None
    return decode_as(_ANY, raw) if memoryview(raw).nbytes <= SCALAR_LIMIT_BYTES else "a large value"


def _shorter(known: float | None, raw: Raw) -> float | None:
    ttl_ms = scalar(raw)
    if ttl_ms is None:
        return known
    seconds = lifetime_seconds(ttl_ms)
    return seconds if known is None else min(known, seconds)


def lifetime_seconds(ttl_ms: Any) -> float:
    """How long a reply is valid, as it declares; a negative value or a value that is not a number means "not
    at all"."""
    is_number = isinstance(ttl_ms, int | float) and not isinstance(ttl_ms, bool) and ttl_ms > 0
    return min(ttl_ms, LONGEST_TTL_SECONDS * 1000) / 1000 if is_number else 0.0
