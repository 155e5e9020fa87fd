"""A tool's result, read.

I own: telling a result's parts apart. Most results are made of blocks we know and are read in one go;
only where that fails, each block is read on its own, so that one odd block costs nothing but itself.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct

from dragoman.content.blocks import Block, KnownBlock, read_block
from dragoman.wire.codec import DECODE_ERRORS, Unreadable, decode_as

BLOCK_LIMIT: Final = 10_000

_WIRE_NAMES = {
    "structured": "structuredContent",
    "is_error": "isError",
    "meta": "_meta",
    "result_type": "resultType",
}


class ToolResult(Struct, kw_only=True, gc=False, rename=_WIRE_NAMES):
    """All of a result but its content."""

    structured: Any = UNSET
    is_error: bool = False
    meta: dict[str, Any] | None = None
    result_type: str = "complete"


class _Known(ToolResult, gc=False, rename=_WIRE_NAMES):
    content: tuple[KnownBlock, ...] = ()


class _Odd(ToolResult, gc=False, rename=_WIRE_NAMES):
    content: list[Raw] = []


_decode_known = msgspec.json.Decoder(_Known).decode


def read_result(raw: Raw) -> tuple[ToolResult, tuple[Block, ...]]:
    """The result and its content, or `Unreadable` if it is not even the shape of one."""
    try:
        known = _decode_known(raw)
    except DECODE_ERRORS:
        odd = decode_as(_Odd, raw)
        if len(odd.content) > BLOCK_LIMIT:
            raise Unreadable(f"more than {BLOCK_LIMIT} blocks of content") from None
        return odd, tuple([read_block(block) for block in odd.content])
    return known, known.content
