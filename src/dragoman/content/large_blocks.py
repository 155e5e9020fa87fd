"""Reads blocks and resources of any size whose texts are needed as a whole.

Strings are decoded piece by piece, and large values of other kinds are left out, so that no single step takes
more than some milliseconds: for a worker thread, which would otherwise hold the interpreter lock.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from dragoman.content.blocks import Block, ResourceData, fitting_to, read_block, read_value
from dragoman.content.json_scan import Broken, Members, first_byte, members_of
from dragoman.content.sources import Escaped, whole
from dragoman.wire.codec import Unreadable, decode_as
from dragoman.wire.messages import ABSENT

SMALL_BYTES: Final = 64 * 1024
"""Values up to this size are decoded as a whole."""


class ResourceParts(Members, rename={"meta": "_meta"}):
    uri: Raw = ABSENT
    mimeType: Raw = ABSENT
    text: Raw = ABSENT
    blob: Raw = ABSENT
    meta: Raw = ABSENT


class BlockParts(ResourceParts, rename={"meta": "_meta"}):
    type: Raw = ABSENT
    data: Raw = ABSENT
    name: Raw = ABSENT
    title: Raw = ABSENT
    description: Raw = ABSENT
    size: Raw = ABSENT
    resource: Raw = ABSENT


def read_any_block(raw: Raw) -> Block:
    """A block; `Unreadable` only if it is not even JSON."""
    if memoryview(raw).nbytes <= SMALL_BYTES:
        return read_block(raw)
    parts = _parts(memoryview(raw), BlockParts)
    members = {name: _value(part) for name, part in parts.items()}
    if "resource" in parts:
        members["resource"] = _resource(parts["resource"])
    return read_value(members)


def read_any_resource(raw: Raw) -> ResourceData:
    """The contents of a resource, or `Unreadable`."""
    try:
        return msgspec.convert(fitting_to(ResourceData, _resource(memoryview(raw))), ResourceData)
    except msgspec.ValidationError as error:
        raise Unreadable(str(error)) from None


def _resource(view: memoryview) -> Any:
    if view.nbytes <= SMALL_BYTES:
        return decode_as(object, Raw(view))
    return {name: _value(part) for name, part in _parts(view, ResourceParts).items()}


def _parts(view: memoryview, wanted: type[Members]) -> dict[str, memoryview]:
    try:
        return members_of(view, wanted)
    except Broken as problem:
        raise Unreadable(str(problem)) from None


def _value(part: memoryview) -> Any:
    if part.nbytes <= SMALL_BYTES:
        return decode_as(object, Raw(part))
    return whole((Escaped(part[1:-1]),)) if first_byte(part) == b'"' else None
