"""Reads a tool's result.

Most results are small, contain known blocks, and are decoded at once; only where that fails, each block and
each field is decoded separately, so that an invalid one affects only itself. A large result is divided in a
worker thread and mostly stays undecoded: `Undecoded` values and `LargeBlock`s are views on its message. Where
there are more than `BLOCK_LIMIT` blocks, one more block contains all of them, as the received JSON array.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct

from dragoman.cleaning import value_for_model
from dragoman.content.blocks import Block, KnownBlock, LargeBlock, read_block
from dragoman.content.json_scan import Broken, Members, TooManyParts, Walk, first_byte, members_of
from dragoman.content.redact import Redactor
from dragoman.wire.codec import DECODE_ERRORS, SHORTEST_SLOW_BYTES, Unreadable, decode_as, describe, is_slow
from dragoman.wire.messages import ABSENT

BLOCK_LIMIT: Final = 10_000
LARGE_BYTES: Final = 128 * 1024
"""Larger results are read by `read_large`, because decoding them would block the event loop."""
SMALL_PART_BYTES: Final = 64 * 1024
"""Parts of a large result up to this size are decoded at once."""
DECODED_LIMIT_BYTES: Final = 1024 * 1024
"""The limit of all these parts together; further parts stay undecoded."""

_WIRE_NAMES = {
    "structured": "structuredContent",
    "is_error": "isError",
    "meta": "_meta",
    "result_type": "resultType",
}


class Undecoded(Struct, frozen=True):
    """A part of a result that is large or cannot be decoded, as received."""

    raw: Raw
    redact: Redactor | None = None
    """Removes secrets from its value."""
    for_model: bool = False
    """Whether its texts are cleaned."""

    @property
    def size_bytes(self) -> int:
        return memoryview(self.raw).nbytes

    def decode(self) -> Any:
        """Its value, or `Unreadable`. Slow, and takes many times the memory of the bytes."""
        value = decode_as(object, self.raw)
        if self.for_model:
            value = value_for_model(value)
        return self.redact.value(value) if self.redact else value


class ToolResult(Struct, kw_only=True, gc=False, rename=_WIRE_NAMES):
    """A result without its content."""

    structured: Any = UNSET
    """The value, or `Undecoded` if it is large or cannot be decoded; see `decoded`."""
    is_error: bool = False
    meta: Any = None
    """An object, None, or `Undecoded`."""
    result_type: str = "complete"


class ForwardedResult(ToolResult, kw_only=True, gc=False):
    """A result that is passed on as received; only its kind and whether it is an error were read."""

    raw: Raw = ABSENT


class _Head(Struct, gc=False, rename=_WIRE_NAMES):
    """The members that are read of a result that is passed on."""

    content: Raw = ABSENT
    is_error: bool = False
    result_type: str = "complete"


class _Shaped(ToolResult, gc=False, rename=_WIRE_NAMES):
    meta: dict[str, Any] | None = None


class _Known(_Shaped, gc=False, rename=_WIRE_NAMES):
    content: tuple[KnownBlock, ...] = ()


class _Odd(_Shaped, gc=False, rename=_WIRE_NAMES):
    content: list[Raw] = []


_decode_known = msgspec.json.Decoder(_Known).decode
_decode_head = msgspec.json.Decoder(_Head).decode


def decoded(part: Any) -> Any:
    """A part of a result as a value, whatever its size. `Unreadable` if it is nested too deeply."""
    return part.decode() if isinstance(part, Undecoded) else part


def is_large(raw: Raw) -> bool:
    return len(raw) > LARGE_BYTES


def read_result(raw: Raw) -> tuple[ToolResult, tuple[Block, ...]]:
    """The result and its content; `Unreadable` if it does not have the structure of a result."""
    if len(raw) >= SHORTEST_SLOW_BYTES and is_slow(raw):
        return read_large_now(raw)
    try:
        known = _decode_known(raw)
    except DECODE_ERRORS:
        try:
            odd = decode_as(_Odd, raw)
        except Unreadable:
            return read_large_now(raw)  # which distinguishes unusual values from invalid ones
        if len(odd.content) > BLOCK_LIMIT:
            return read_large_now(raw)
        return odd, tuple([read_block(block) for block in odd.content])
    return known, known.content


def read_forwarded(raw: Raw) -> tuple[ToolResult, tuple[Block, ...]]:
    """A result to pass on. A result with an unusual structure is read completely, as by `read_result`."""
    try:
        head = _decode_head(raw)
    except DECODE_ERRORS:
        return read_large_now(raw)
    if head.content is not ABSENT and bytes(memoryview(head.content)[:1]) != b"[":
        return read_large_now(raw)
    try:
        str(raw, "utf-8")  # the parts that stay undecoded may contain anything
    except UnicodeDecodeError as error:
        raise Unreadable(describe(error)) from None
    return ForwardedResult(is_error=head.is_error, result_type=head.result_type, raw=raw), ()


async def read_large(raw: Raw) -> tuple[ToolResult, tuple[Block, ...]]:
    """`read_result` for a large result; runs in a worker thread."""
    return await asyncio.to_thread(read_large_now, raw)


def read_large_now(raw: Raw) -> tuple[ToolResult, tuple[Block, ...]]:
    reader = _LargeReader(memoryview(raw))
    try:
        return reader.read()
    except Broken as problem:
        raise Unreadable(str(problem)) from None


class _Parts(Members, rename={"meta": "_meta"}):
    content: Raw = ABSENT
    structuredContent: Raw = ABSENT
    isError: Raw = ABSENT
    meta: Raw = ABSENT
    resultType: Raw = ABSENT


class _LargeReader:
    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._room = DECODED_LIMIT_BYTES

    def read(self) -> tuple[ToolResult, tuple[Block, ...]]:
        parts = members_of(self._view, _Parts)
        result = ToolResult(
            structured=self._value(parts.get("structuredContent"), UNSET),
            is_error=_is_error(parts.get("isError")),
            meta=self._meta(parts.get("_meta")),
            result_type=_result_type(parts.get("resultType")),
        )
        return result, self._content(parts.get("content"))

    def _content(self, part: memoryview | None) -> tuple[Block, ...]:
        if part is None or bytes(part[:5]) == b"null":
            return ()
        if first_byte(part) != b"[":
            raise Broken("Expected `array` - at `$.content`")
        blocks: list[Block] = []
        try:
            for begin, end in Walk(part).elements(0):
                if len(blocks) == BLOCK_LIMIT:
                    raise TooManyParts
                blocks.append(self._block(part[begin:end]))
        except TooManyParts:
            blocks.append(LargeBlock(Raw(part)))  # all of them, for the file
        return tuple(blocks)

    def _block(self, part: memoryview) -> Block:
        return read_block(Raw(part)) if self._has_room(part) else LargeBlock(Raw(part))

    def _value(self, part: memoryview | None, default: Any) -> Any:
        if part is None:
            return default
        raw = Raw(part)
        if self._has_room(part):
            with contextlib.suppress(Unreadable):  # a number out of range, or nested too deeply
                return decode_as(object, raw)
        # A copy releases the message, if that is much larger.
        return Undecoded(raw.copy() if part.nbytes < self._view.nbytes // 2 else raw)

    def _meta(self, part: memoryview | None) -> Any:
        """`_meta` of a result; a value that is not an object counts as missing."""
        return None if part is None or first_byte(part) != b"{" else self._value(part, None)

    def _has_room(self, part: memoryview) -> bool:
        """Whether a part is to be decoded at once."""
        if part.nbytes > min(SMALL_PART_BYTES, self._room):
            return False
        self._room -= part.nbytes
        return True


def _is_error(part: memoryview | None) -> bool:
    """Whether the result is an error. A value that is not a boolean is interpreted too, so that a badly
    marked error is not treated as a success."""
    return part is not None and bytes(part[:8]) not in (b"null", b"false", b'"false"', b"0")


def _result_type(part: memoryview | None) -> str:
    kind = None if part is None else decode_as(_TEXT, Raw(part))
    return "complete" if kind is None else kind


_TEXT: Any = str | None
