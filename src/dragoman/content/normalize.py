"""Converts the blocks of a result to parts that a model can be given.

Text stays text, an image becomes one that model APIs accept, audio and other data become a file and a
sentence, a link becomes one line, and an unknown type a sentence that names it. Nothing is cut here: see
`budget.py`. Undecoded text blocks stay undecoded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from dragoman.cleaning import one_line
from dragoman.content.blocks import (
    AudioBlock,
    Block,
    ImageBlock,
    LargeBlock,
    ResourceBlock,
    ResourceData,
    ResourceLinkBlock,
    TextBlock,
    UnknownBlock,
    read_block,
)
from dragoman.content.json_scan import Broken, Members, first_byte, members_of
from dragoman.content.large_blocks import BlockParts, ResourceParts
from dragoman.content.media import IMAGE_LIMIT, PART_LIMIT, Media, PreparedMedia, named
from dragoman.content.redact import Redactor
from dragoman.content.result import SMALL_PART_BYTES
from dragoman.content.saving import NotSaved, Saver, handle_of
from dragoman.content.sources import Escaped, Joined, Plain, RawJson, Source
from dragoman.content.spill import Kind, Saved

_LINK_WORDS: Final = 300
DECODED_BYTES: Final = 4096
"""Undecoded blocks up to this size are decoded; the text of larger ones stays encoded."""


class Data(Struct, frozen=True):
    """Data in base64, to be shown as an image or saved."""

    kind: Kind
    name: str
    encoded: Source
    mime_type: str | None = None


class Dump(Struct, frozen=True):
    """A block that can only be saved, as received."""

    about: str
    json: memoryview


Part = Source | Data | Dump


class Parts(Struct):
    """The parts that the model may be given, in the order of the result."""

    shown: list[Source | ImageBlock] = []
    notes: list[str] = []
    """The host's own sentences about data that is not shown; the model is given them even if the text is cut
    or saved."""
    saved: list[Saved] = []

    @property
    def texts(self) -> tuple[Source, ...]:
        return tuple([part for part in self.shown if not isinstance(part, ImageBlock)])


def opened(blocks: Iterable[Block]) -> list[Part]:
    """The parts of the blocks. Slow for a large block, so it then runs in a worker thread."""
    return [part for block in blocks for part in _opened(block)]


async def gathered(
    parts: Iterable[Part], media: Media, redact: Redactor | None = None, *, owner: str = ""
) -> Parts:
    """The parts with all data converted to images or saved. Secrets are removed here from blocks that are
    saved as received, and later from texts, when they are put together. `owner`: the server in whose share
    files are saved."""
    found = Parts()
    data_count = image_count = 0
    for part in parts:
        match part:
            case Data():
                data_count += 1
                if data_count <= PART_LIMIT:
                    may_show = part.kind != "audio" and image_count < IMAGE_LIMIT
                    shown = await media.data(
                        part.name,
                        part.encoded,
                        part.mime_type,
                        may_show=may_show,
                        save_images=True,
                        owner=owner,
                    )
                    image_count += isinstance(shown.block, ImageBlock)
                    _take(found, part.kind, shown)
            case Dump():
                data_count += 1
                if data_count <= PART_LIMIT:
                    await asyncio.to_thread(_dump, found, part, media.saver, redact, owner)
            case _:
                found.shown.append(part)
    if data_count > PART_LIMIT:
        found.notes.append(f"[{data_count - PART_LIMIT} more pieces of data are not shown]")
    return found


def _take(found: Parts, kind: Kind, shown: PreparedMedia) -> None:
    if isinstance(shown.block, ImageBlock):
        kind = "image"
        found.shown.append(shown.block)
    else:
        found.notes.append(shown.block.as_text())
    if shown.path is not None:
        found.saved.append(Saved(handle_of(shown.path.name), shown.path, shown.size_bytes, kind))


def _dump(found: Parts, part: Dump, saver: Saver, redact: Redactor | None, owner: str) -> None:
    source = Joined((RawJson(part.json),), redact)
    about = f"{part.about}, {part.json.nbytes} bytes"
    try:
        path, size = saver.save_pieces_now(source.pieces(), source.most_bytes, ".json", owner=owner)
    except NotSaved as error:
        found.notes.append(f"[{about}, not saved: {error}]")
        return
    handle = handle_of(path.name)
    found.saved.append(Saved(handle, path, size, "json"))
    found.notes.append(f'[{about}, saved as {path}; read_result(handle="{handle}", lines="1-200") reads it]')


def _opened(block: Block) -> Iterable[Part]:
    match block:
        case TextBlock(text):
            return (Plain(text),)
        case ImageBlock(data, mime_type):
            return (Data("image", named("image", mime_type), Plain(data), mime_type),)
        case AudioBlock(data, mime_type):
            return (Data("audio", named("audio", mime_type), Plain(data), mime_type),)
        case ResourceBlock(resource):
            return _resource(resource)
        case ResourceLinkBlock():
            return (Plain(link_line(block)),)
        case UnknownBlock(value):
            return (Plain(unknown_line(value)),)
        case LargeBlock(raw):
            return _large(raw)


def _resource(resource: ResourceData) -> Iterable[Part]:
    name = named(f"resource {resource.uri}", resource.mime_type)
    if resource.text is not None:
        return Plain(f"[{name}]"), Plain(resource.text)
    return (Data("data", name, Plain(resource.blob or ""), resource.mime_type),)


def _large(raw: Raw) -> Iterable[Part]:
    view = memoryview(raw)
    if first_byte(view) == b"[":
        return (Dump("there are more blocks of content than are shown; all of them", view),)
    if view.nbytes <= DECODED_BYTES:
        return _opened(read_block(raw))
    fields = _parts_of(view, BlockParts)
    kind, mime_type = _short(fields.get("type")), _short(fields.get("mimeType"))
    text, data = _inside(fields.get("text")), _inside(fields.get("data"))
    if kind == "text" and text is not None:
        return (Escaped(text),)
    if kind == "image" and data is not None:
        return (Data("image", named("image", mime_type), Escaped(data), mime_type),)
    if kind == "audio" and data is not None:
        return (Data("audio", named("audio", mime_type), Escaped(data), mime_type),)
    if kind == "resource" and "resource" in fields:
        return _large_resource(_parts_of(fields["resource"], ResourceParts), view)
    return (Dump(f"content of unknown type {one_line(kind or '?', 100)!r}", view),)


def _large_resource(fields: dict[str, memoryview], whole: memoryview) -> Iterable[Part]:
    uri, mime_type = _short(fields.get("uri")) or "without an address", _short(fields.get("mimeType"))
    name = named(f"resource {uri}", mime_type)
    text, blob = _inside(fields.get("text")), _inside(fields.get("blob"))
    if text is not None:
        return Plain(f"[{name}]"), Escaped(text)
    if blob is not None:
        return (Data("data", name, Escaped(blob), mime_type),)
    return (Dump(name, whole),)


def link_line(link: ResourceLinkBlock) -> str:
    """A resource link in one line: its name, URI, type and size."""
    title = one_line(link.title or link.name or "", _LINK_WORDS)
    about = [one_line(link.uri, 2000)]
    if link.mime_type:
        about.append(one_line(link.mime_type, 100))
    if link.size is not None:
        about.append(f"{link.size} bytes")
    if link.description:
        about.append(one_line(link.description, _LINK_WORDS))
    return f"[resource {title}: {', '.join(about)}]" if title else f"[resource {', '.join(about)}]"


def unknown_line(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return f"[content of unknown type {one_line(str(kind), 100)!r}]"  # pyright: ignore[reportUnknownArgumentType]


def _parts_of(view: memoryview, wanted: type[Members]) -> dict[str, memoryview]:
    try:
        return members_of(view, wanted)
    except Broken:
        return {}


def _inside(value: memoryview | None) -> memoryview | None:
    """The bytes between the quotes of a string."""
    return None if value is None or first_byte(value) != b'"' else value[1:-1]


def _short(value: memoryview | None) -> str | None:
    if value is None or value.nbytes > SMALL_PART_BYTES:
        return None
    try:
        return msgspec.json.decode(value, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
