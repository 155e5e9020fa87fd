"""Reads the content blocks of a tool's result.

Optional fields that are null or of a wrong type count as missing. A block of an unknown type, or with other
invalid fields, is kept as an `UnknownBlock`; it does not affect the rest of the result. A large block stays
undecoded, as a `LargeBlock`, until its use is known.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, structs

from dragoman.wire.codec import DECODE_ERRORS, Unreadable, decode_as, is_slow


class TextBlock(Struct, frozen=True, tag_field="type", tag="text"):
    """Text."""

    text: str

    def as_text(self) -> str:
        """What can be read of it."""
        return self.text


class _BinaryBlock(Struct, frozen=True, rename="camel"):
    data: str
    """The data in base64, as received."""
    mime_type: str = "application/octet-stream"

    def decode(self) -> bytes:
        """The bytes; raises ValueError if the base64 is invalid."""
        try:
            return base64.b64decode(self.data, validate=True)
        except binascii.Error as error:
            raise ValueError(f"not valid base64: {error}") from None


class ImageBlock(_BinaryBlock, frozen=True, rename="camel", tag_field="type", tag="image"):
    """An image in base64."""

    def as_text(self) -> str:
        """What can be read of it."""
        return f"[image, {self.mime_type}]"


class AudioBlock(_BinaryBlock, frozen=True, rename="camel", tag_field="type", tag="audio"):
    """Sound in base64."""

    def as_text(self) -> str:
        """What can be read of it."""
        return f"[audio, {self.mime_type}]"


class ResourceLinkBlock(Struct, frozen=True, rename="camel", tag_field="type", tag="resource_link"):
    """The address of a resource that can be read."""

    uri: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | float | None = None
    """The size in bytes, as the server declares it."""

    def as_text(self) -> str:
        """What can be read of it."""
        return f"[resource {self.title or self.name or self.uri}: {self.uri}]"


class ResourceData(Struct, frozen=True, rename={"mime_type": "mimeType", "meta": "_meta"}):
    """The contents of a resource: text, or data in base64."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None
    meta: dict[str, Any] | UnsetType = UNSET
    """`_meta`, as the server sent it; for programs: for instance how a page of MCP Apps is to be shown."""


class ResourceBlock(Struct, frozen=True, tag_field="type", tag="resource"):
    """A resource inside a result."""

    resource: ResourceData

    def as_text(self) -> str:
        """What can be read of it."""
        return self.resource.text if self.resource.text is not None else f"[resource {self.resource.uri}]"


class UnknownBlock(Struct, frozen=True):
    """A block that this version cannot read, as received."""

    value: Any

    def as_text(self) -> str:
        """What can be read of it."""
        kind: Any = self.value.get("type") if isinstance(self.value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return f"[content of unknown type {kind!r}]"


class LargeBlock(Struct, frozen=True):
    """A block of a large result, as received: a view on the message, which it keeps in memory."""

    raw: Raw

    @property
    def size_bytes(self) -> int:
        return memoryview(self.raw).nbytes

    def as_text(self) -> str:
        """The whole text, decoded on demand: slow, and as large as the block."""
        return read_block(self.raw).as_text()


KnownBlock = TextBlock | ImageBlock | AudioBlock | ResourceLinkBlock | ResourceBlock
Block = KnownBlock | UnknownBlock | LargeBlock

_KNOWN = cast("type[KnownBlock]", KnownBlock)
_SHAPES: Final[Mapping[str, type[Struct]]] = {
    "text": TextBlock,
    "image": ImageBlock,
    "audio": AudioBlock,
    "resource_link": ResourceLinkBlock,
    "resource": ResourceBlock,
}
_decode = msgspec.json.Decoder(KnownBlock).decode


def read_block(raw: Raw) -> Block:
    """A typed block; `Unreadable` only if it is not even JSON."""
    try:
        return decode_as(_KNOWN, raw) if is_slow(raw) else _decode(raw)
    except (Unreadable, *DECODE_ERRORS):
        pass
    try:
        value = decode_as(object, raw)
    except Unreadable as problem:
        return _read_odd(raw, problem)
    return read_value(value)


def read_value(value: Any) -> Block:
    """A decoded block, without optional fields that are null or of a wrong type."""
    try:
        return msgspec.convert(_without_misfits(value), KnownBlock)
    except (msgspec.ValidationError, RecursionError):
        return UnknownBlock(value)


def _without_misfits(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    block = cast("dict[str, Any]", value)
    kind = block.get("type")
    shape = _SHAPES.get(kind) if isinstance(kind, str) else None
    if shape is None:
        return block
    found = fitting_to(shape, block)
    if shape is ResourceBlock:
        found["resource"] = fitting_to(ResourceData, found.get("resource"))
    return found


def fitting_to(shape: type[Struct], value: Any) -> Any:
    """An object without the optional fields that do not fit the type; any other value unchanged."""
    if not isinstance(value, dict):
        return value
    found = dict(cast("dict[str, Any]", value))
    for field in structs.fields(shape):
        if not field.required and field.encode_name in found:
            try:
                msgspec.convert(found[field.encode_name], field.type)
            except msgspec.ValidationError:
                del found[field.encode_name]
    return found


def _read_odd(raw: Raw, problem: Unreadable) -> Block:
    """Reads JSON that the fast decoder refuses: with numbers out of range, which become null, or nested too
    deeply."""
    value: Any = None
    try:
        text = bytes(raw).decode()  # the library itself accepts surrogates
        value = json.loads(text, parse_float=_finite, parse_int=_finite, parse_constant=_refused)
        msgspec.json.encode(value)  # fails for lone surrogates
        return read_value(value)
    except RecursionError:
        return UnknownBlock(value)
    except ValueError:
        raise problem from None


def _finite(digits: str) -> float | None:
    try:
        return int(digits)
    except ValueError:
        number = float(digits)
        return number if math.isfinite(number) else None


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
