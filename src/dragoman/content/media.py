"""Converts resources, images and other data for a model.

Text is cleaned and cut, images are converted, and everything else is saved to disk and named. What cannot be
shown becomes a sentence and does not affect the rest. The type of data is found from its bytes; the type that
the server claims is only repeated. `images.py` and `saving.py` do the work.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from dragoman.cleaning import for_model, one_line
from dragoman.content import images
from dragoman.content.blocks import Block, ImageBlock, ResourceData, TextBlock
from dragoman.content.saving import NotSaved, Saver, ending
from dragoman.content.sources import Plain, Source

TEXT_LIMIT: Final = 100_000
"""The maximum length of the text of one resource, all its parts together, in characters."""
IMAGE_LIMIT: Final = 20
"""The maximum number of images shown of one resource; the others are saved."""
PART_LIMIT: Final = 200
AT_ONCE: Final = 2
"""The maximum number of images that are decoded at the same time: each may take 200 MB meanwhile."""
HELD_LIMIT_BYTES: Final = 16 * 1024 * 1024
"""Data up to this size, in base64, is decoded as a whole; larger data is written to its file piece by
piece."""


class PreparedMedia(NamedTuple):
    block: Block
    path: Path | None = None
    """The file in which it was saved."""
    size_bytes: int = 0


class Media:
    def __init__(self, saver: Saver | None = None) -> None:
        self.saver = saver or Saver()
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def shown(self, parts: Iterable[ResourceData], *, owner: str = "") -> tuple[Block, ...]:
        """The parts of one resource, as blocks for a model; a sentence if there is none.

        `owner`: the server in whose share files are saved.
        """
        blocks: list[Block] = []
        room, shown_images = TEXT_LIMIT, 0
        everything = list(parts)
        for part in everything[:PART_LIMIT]:
            if len(everything) > 1:
                blocks.append(TextBlock(f"[{named(part.uri, part.mime_type)}]"))
            if part.text is not None:
                block = _text(part.text, room)
                room = max(0, room - len(block.text))
                blocks.append(block)
            else:
                name, blob = named(part.uri, part.mime_type), Plain(part.blob or "")
                may_show = shown_images < IMAGE_LIMIT
                block = (await self.data(name, blob, part.mime_type, may_show=may_show, owner=owner)).block
                shown_images += isinstance(block, ImageBlock)
                blocks.append(block)
        if len(everything) > PART_LIMIT:
            blocks.append(TextBlock(f"[{len(everything) - PART_LIMIT} more parts are not shown]"))
        return tuple(blocks) or (TextBlock("[the resource is empty]"),)

    async def data(
        self,
        name: str,
        encoded: Source,
        mime_type: str | None,
        *,
        may_show: bool,
        save_images: bool = False,
        owner: str = "",
    ) -> PreparedMedia:
        """Data in base64: an image if it is one and may be shown, otherwise a file and a sentence.

        `save_images`: an image that is shown is saved as well, as its server sent it.
        """
        if encoded.most_bytes > HELD_LIMIT_BYTES:
            return await asyncio.to_thread(self._streamed, name, encoded, mime_type, owner)
        try:
            data = await asyncio.to_thread(lambda: b"".join(from_base64(encoded.pieces())))
        except NotBase64:
            return _not_base64(name)
        if not data:
            return PreparedMedia(TextBlock(f"[{name}: empty]"))
        why = ""
        if images.kind_of(data) is None:
            why = f"{images.NO_IMAGE}; " if (mime_type or "").startswith("image/") else ""
        elif may_show:
            try:
                async with self._turns:
                    picture = await asyncio.to_thread(images.fit, data)
                block = ImageBlock(base64.b64encode(picture.data).decode(), picture.mime_type)
                return (
                    await self._copied(block, data, mime_type, owner) if save_images else PreparedMedia(block)
                )
            except images.NotAnImage as error:
                why = f"{error}; "
        return await self._saved(f"{name}: {why}{len(data)} bytes", data, mime_type, owner)

    async def _copied(
        self, block: ImageBlock, data: bytes, mime_type: str | None, owner: str
    ) -> PreparedMedia:
        try:
            path = await self.saver.save(data, mime_type, owner=owner, is_copy=True)
        except NotSaved:  # the model has the image itself
            return PreparedMedia(block)
        return PreparedMedia(block, path, len(data))

    async def _saved(self, about: str, data: bytes, mime_type: str | None, owner: str) -> PreparedMedia:
        try:
            path = await self.saver.save(data, mime_type, owner=owner)
        except NotSaved as error:
            return PreparedMedia(TextBlock(f"[{about}, not saved: {error}]"))
        return PreparedMedia(TextBlock(f"[{about}, saved as {path}]"), path, len(data))

    def _streamed(self, name: str, encoded: Source, mime_type: str | None, owner: str) -> PreparedMedia:
        most_bytes = encoded.most_bytes // 4 * 3 + 3
        try:
            if most_bytes > self.saver.file_limit_bytes:
                raise NotSaved(f"it is larger than the limit of {self.saver.file_limit_bytes} bytes")
            pieces = from_base64(encoded.pieces())
            first = next(pieces, b"")
            end = ending(first, mime_type)
            path, size = self.saver.save_pieces_now(chain((first,), pieces), most_bytes, end, owner=owner)
        except NotBase64:
            return _not_base64(name)
        except NotSaved as error:
            return PreparedMedia(TextBlock(f"[{name}: about {most_bytes} bytes, not saved: {error}]"))
        return PreparedMedia(TextBlock(f"[{name}: {size} bytes, saved as {path}]"), path, size)


def named(what: str, mime_type: str | None) -> str:
    """A description of data for a sentence: the detected type, and the type that its server declares."""
    kind = f", declared as {one_line(mime_type, 100)}" if mime_type else ""
    return f"{one_line(what, 500)}{kind}"


def _not_base64(name: str) -> PreparedMedia:
    return PreparedMedia(TextBlock(f"[{name}: its data is not valid base64]"))


def _text(text: str, room: int) -> TextBlock:
    return TextBlock(for_model(text, room) if room else f"[{len(text)} more characters are not shown]")


class NotBase64(ValueError):
    """It is not valid base64."""


def from_base64(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Decodes base64 text in pieces; raises `NotBase64` as soon as the text is found invalid. Strict, except
    for line breaks, which many encoders insert."""
    rest, has_ended = b"", False
    for piece in pieces:
        rest += piece.translate(None, b"\r\n")
        whole = len(rest) - len(rest) % 4
        if not whole:
            continue
        if has_ended:
            raise NotBase64("there is data after its end")
        try:
            data = binascii.a2b_base64(rest[:whole], strict_mode=True)
        except binascii.Error as error:
            raise NotBase64(str(error)) from None
        has_ended = rest[whole - 1 : whole] == b"="
        rest = rest[whole:]
        yield data
    if rest:
        raise NotBase64("it is cut off")
