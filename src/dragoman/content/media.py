"""What a model is given of a resource.

I own: text cleaned and cut, images made to fit, everything else saved to disk and named. What cannot be
shown becomes a sentence, and never costs the rest. What a part really is, its bytes say; the type that its
server claims is only repeated. `images.py` and `saving.py` do the work.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterable
from typing import Final

from dragoman.cleaning import for_model, one_line
from dragoman.content import images
from dragoman.content.blocks import Block, ImageBlock, Resource, TextBlock
from dragoman.content.saving import NotSaved, Saver

TEXT_LIMIT: Final = 100_000
"""Characters of text of one resource, all its parts together."""
IMAGE_LIMIT: Final = 20
"""Images of one resource; the others are saved."""
PART_LIMIT: Final = 200
AT_ONCE: Final = 2
"""Images that are unpacked at the same time: each may take 200 MB while it is."""


class Media:
    def __init__(self, saver: Saver | None = None) -> None:
        self._saver = saver or Saver()
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def shown(self, parts: Iterable[Resource]) -> tuple[Block, ...]:
        """The parts of one resource, as blocks for a model; a sentence if there is none."""
        blocks: list[Block] = []
        room, shown_images = TEXT_LIMIT, 0
        everything = list(parts)
        for part in everything[:PART_LIMIT]:
            if len(everything) > 1:
                blocks.append(TextBlock(f"[{_named(part)}]"))
            if part.text is not None:
                block = _text(part.text, room)
                room = max(0, room - len(block.text))
                blocks.append(block)
            else:
                block = await self._blob(part, may_show=shown_images < IMAGE_LIMIT)
                shown_images += isinstance(block, ImageBlock)
                blocks.append(block)
        if len(everything) > PART_LIMIT:
            blocks.append(TextBlock(f"[{len(everything) - PART_LIMIT} more parts are not shown]"))
        return tuple(blocks) or (TextBlock("[the resource is empty]"),)

    async def _blob(self, part: Resource, *, may_show: bool) -> Block:
        try:
            data = await asyncio.to_thread(_decoded, part.blob or "")
        except ValueError:
            return TextBlock(f"[{_named(part)}: its data is not valid base64]")
        if not data:
            return TextBlock(f"[{_named(part)}: empty]")
        why = ""
        if may_show and images.kind_of(data) is not None:
            try:
                async with self._turns:
                    picture = await asyncio.to_thread(images.fit, data)
                return ImageBlock(base64.b64encode(picture.data).decode(), picture.mime_type)
            except images.NotAnImage as error:
                why = f"{error}; "
        return await self._saved(part, data, why)

    async def _saved(self, part: Resource, data: bytes, why: str) -> Block:
        about = f"{_named(part)}: {why}{len(data)} bytes"
        try:
            path = await self._saver.save(data, part.mime_type)
        except NotSaved as error:
            return TextBlock(f"[{about}, not saved: {error}]")
        return TextBlock(f"[{about}, saved as {path}]")


def _text(text: str, room: int) -> TextBlock:
    return TextBlock(for_model(text, room) if room else f"[{len(text)} more characters are not shown]")


def _decoded(blob: str) -> bytes:
    """Strict, but for line breaks, which many encoders put in."""
    try:
        return base64.b64decode(blob.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("not valid base64") from None


def _named(part: Resource) -> str:
    kind = f", said to be {one_line(part.mime_type, 100)}" if part.mime_type else ""
    return f"{one_line(part.uri, 500)}{kind}"
