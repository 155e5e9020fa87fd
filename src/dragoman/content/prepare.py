"""Prepares a tool's result for a model: splits blocks, includes structured content only once, cleans text,
removes secrets, and writes text that is too large to a file, of which the model gets both ends and a handle
to read more.

Small results take a short way that awaits nothing. Everything slow happens in worker threads, in steps that
let the event loop run. Nothing of a result is kept once it is prepared.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, structs

from dragoman.cleaning import for_model, is_plain, value_for_model
from dragoman.content.blocks import (
    Block,
    ImageBlock,
    LargeBlock,
    ResourceBlock,
    TextBlock,
    UnknownBlock,
    read_block,
)
from dragoman.content.budget import ResultLimits, cut_to_fit, fits
from dragoman.content.dedupe_structured import is_in_large_texts, is_in_texts
from dragoman.content.json_scan import first_byte
from dragoman.content.media import Media
from dragoman.content.normalize import Parts, gathered, opened
from dragoman.content.redact import BASE64_FIELDS, Redactor
from dragoman.content.result import ToolResult, Undecoded
from dragoman.content.saving import NotSaved, Saver
from dragoman.content.sources import Joined, Plain, RawJson, Source
from dragoman.content.spill import Kind, Saved, note_of, spill
from dragoman.content.tokens import MOST_PER_CHARACTER
from dragoman.wire.codec import Unreadable

__all__ = ["OutputCheck", "Prepared", "Preparer", "Redactor", "ResultLimits", "Saved"]

OutputCheck = Callable[[Any], Sequence[str]]
"""Describes what is wrong with structured content; empty if it matches the tool's output schema."""

BLOCK_COUNT_LIMIT: Final = 100
"""The maximum number of separate texts for a model; more are joined."""
NOTE_LIMIT: Final = 50
CHECKED_LIMIT_BYTES: Final = 1024 * 1024
"""Larger structured content is not checked: decoding it would block the event loop."""
PROBLEM_LIMIT: Final = 20
LONGEST_ESCAPE: Final = 12
"""The maximum number of bytes of one character in JSON."""


class Prepared(Struct, frozen=True):
    content: tuple[Block, ...]
    """The blocks for the model."""
    saved: tuple[Saved, ...] = ()
    """The files that were written for this result."""
    problems: tuple[str, ...] = ()
    """Problems of the result, for instance that it does not match the tool's output schema."""


class _Group(Struct):
    """Text that is handled as one unit: the text of the blocks, or the structured content."""

    sources: tuple[Source, ...]
    kind: Kind
    text: str | None
    """The whole text; None if it is certainly too large."""


class Preparer:
    def __init__(self, media: Media | None = None, *, limits: ResultLimits | None = None) -> None:
        self.limits = limits or ResultLimits()
        self._media = media or Media()

    @property
    def limits(self) -> ResultLimits:
        return self._limits

    @limits.setter
    def limits(self, limits: ResultLimits) -> None:
        self._limits = limits
        self._room = min(limits.characters, limits.tokens // MOST_PER_CHARACTER)
        """The number of characters that certainly fit."""

    @property
    def saver(self) -> Saver:
        return self._media.saver

    def is_ready(self, result: ToolResult, content: tuple[Block, ...]) -> bool:
        """Whether a model can be given the result unchanged: one short text and nothing else."""
        if len(content) != 1 or result.structured is not UNSET or result.meta is not None:
            return False
        block = content[0]
        return type(block) is TextBlock and len(text := block.text) < self._room and is_plain(text)

    def prepare_quickly(
        self,
        result: ToolResult,
        content: tuple[Block, ...],
        redact: Redactor | None = None,
        output_check: OutputCheck | None = None,
    ) -> Prepared | None:
        """Prepares a small result that consists of text only; None if `prepare` is needed."""
        room = self._room
        for block in content:
            if type(block) is not TextBlock:
                return None
            room -= len(block.text) + 1
        if room < 0 or len(content) > BLOCK_COUNT_LIMIT:
            return None
        structured, problems = result.structured, ()
        if structured is not UNSET:
            if isinstance(structured, Undecoded):
                return None
            if structured is not None and not is_in_texts(structured, [block.as_text() for block in content]):
                text = _as_json(structured)
                if len(text) > room:
                    return None
                content = (*content, TextBlock(text))
            if output_check is not None:
                problems = tuple(output_check(structured))[:PROBLEM_LIMIT]
        return Prepared(_for_model(content, redact), (), problems)

    async def prepare(
        self,
        result: ToolResult,
        content: tuple[Block, ...],
        *,
        redact: Redactor | None = None,
        output_check: OutputCheck | None = None,
        owner: str = "",
    ) -> Prepared:
        """Prepares any result for the model. No content of a result makes it raise.

        `owner`: the server in whose share files are saved.
        """
        problems: tuple[str, ...] = ()
        if output_check is not None and result.structured is not UNSET:
            problems = await asyncio.to_thread(_problems, result.structured, output_check)
        if redact and _has_resource(content):
            content = await asyncio.to_thread(_covered_across, content, redact, for_model)
        parts = await gathered(await asyncio.to_thread(opened, content), self._media, redact, owner=owner)
        return await asyncio.to_thread(self._fitted, result, parts, redact, problems, owner)

    async def prepare_whole(
        self,
        result: ToolResult,
        content: tuple[Block, ...],
        *,
        redact: Redactor | None = None,
        output_check: OutputCheck | None = None,
    ) -> Prepared:
        """The result as received, whatever its size, for a person or a program. Only secrets are removed."""
        return await asyncio.to_thread(_as_it_came, result, content, redact, output_check)

    def _fitted(
        self,
        result: ToolResult,
        parts: Parts,
        redact: Redactor | None,
        problems: tuple[str, ...],
        owner: str,
    ) -> Prepared:
        groups = [_Group(parts.texts, "text", None)] if parts.texts else []
        if (structured := _structured(result.structured, parts.texts)) is not None:
            groups.append(_Group((structured,), "json", None))
        for group in groups:
            group.text = self._whole(Joined(group.sources, redact))
        saved = list(parts.saved)
        notes = [redact.text(note) for note in _notes(parts.notes)] if redact else _notes(parts.notes)
        large = self._too_large(groups, notes)
        given = {id(group): self._ends(group, redact, saved, owner) for group in large}
        shown: list[Block] = []
        for group in groups:
            blocks = given.get(id(group))
            if blocks is not None:
                shown += blocks
            elif group.kind == "text":
                shown += _in_order(parts, group.text or "", redact)
            else:
                shown.append(TextBlock(group.text or ""))
        if not groups or id(groups[0]) in given or groups[0].kind == "json":
            shown += [part for part in parts.shown if isinstance(part, ImageBlock)]
        shown += [TextBlock(note) for note in notes]
        return Prepared(_for_model(tuple(shown), redact), tuple(saved), problems)

    def _whole(self, joined: Joined) -> str | None:
        if joined.most_bytes > LONGEST_ESCAPE * self.limits.characters:
            return None
        return b"".join(joined.pieces()).decode("utf-8", "replace")

    def _too_large(self, groups: list[_Group], notes: list[str]) -> list[_Group]:
        """The groups that must be written to files, the largest first, until the rest fits."""
        left = sorted(groups, key=lambda group: -len(group.text) if group.text is not None else -(2**62))
        gone: list[_Group] = []
        while left:
            texts = [group.text for group in left]
            text = "\n".join([*filter(None, texts), *notes])
            if None not in texts and fits(text, self.limits):
                break
            gone.append(left.pop(0))
        return gone

    def _ends(self, group: _Group, redact: Redactor | None, saved: list[Saved], owner: str) -> list[Block]:
        """The ends of a text that is written to a file, with the note about it; a cut text if it cannot be
        written."""
        joined = Joined(group.sources, redact)
        try:
            spilled = spill(
                joined.pieces(), joined.most_bytes, self.saver, self.limits, kind=group.kind, owner=owner
            )
        except NotSaved as error:
            return [TextBlock(self._cut(group, joined)), TextBlock(f"[the rest is not saved: {error}]")]
        saved.append(spilled.saved)
        texts = (spilled.head, note_of(spilled), spilled.tail)
        return [TextBlock(text) for text in texts if text]

    def _cut(self, group: _Group, joined: Joined) -> str:
        if group.text is not None:
            return cut_to_fit(group.text, self.limits)
        held, size = b"", 0
        for piece in joined.pieces():
            size += len(piece)
            if len(held) < 4 * self.limits.characters:
                held += piece
        text = held.decode("utf-8", "ignore")
        return cut_to_fit(text, self.limits, size - len(held))


def _for_model(blocks: tuple[Block, ...], redact: Redactor | None) -> tuple[Block, ...]:
    """The blocks with cleaned texts. Secrets are removed last, because removed characters may have been
    inside them."""
    texts = [for_model(block.text) if isinstance(block, TextBlock) else None for block in blocks]
    return _with_texts(blocks, texts, redact)


def _has_resource(blocks: tuple[Block, ...]) -> bool:
    return len(blocks) > 1 and any(isinstance(block, ResourceBlock) for block in blocks)


def _covered_across(
    blocks: tuple[Block, ...], redact: Redactor, cleaned: Callable[[str], str] = str
) -> tuple[Block, ...]:
    """The blocks without secrets that span texts and embedded resources, whose text gets a heading later."""
    texts = [block.as_text() if _has_text(block) else None for block in blocks]
    covered = iter(redact.texts([cleaned(text) for text in texts if text is not None]))
    return tuple(
        [block if text is None else _with_text(block, next(covered)) for block, text in zip(blocks, texts)]
    )


def _has_text(block: Block) -> bool:
    return isinstance(block, TextBlock) or (
        isinstance(block, ResourceBlock) and block.resource.text is not None
    )


def _with_text(block: Block, text: str) -> Block:
    if isinstance(block, ResourceBlock):
        return ResourceBlock(structs.replace(block.resource, text=text))
    return TextBlock(text)


def _with_texts(
    blocks: tuple[Block, ...], texts: list[str | None], redact: Redactor | None
) -> tuple[Block, ...]:
    """The blocks with these texts (None for a block without text), without secrets, even those that span
    several texts."""
    if redact:
        covered = iter(redact.texts([text for text in texts if text is not None]))
        texts = [None if text is None else next(covered) for text in texts]
    return tuple(
        [
            block if text is None or (type(block) is TextBlock and text is block.text) else TextBlock(text)
            for block, text in zip(blocks, texts)
        ]
    )


def _as_it_came(
    result: ToolResult, content: tuple[Block, ...], redact: Redactor | None, check: OutputCheck | None
) -> Prepared:
    blocks = tuple([_whole_block(block, redact) for block in content])
    if redact and _has_resource(blocks):
        blocks = _covered_across(blocks, redact)
    elif redact:
        texts = [block.text if isinstance(block, TextBlock) else None for block in blocks]
        blocks = _with_texts(blocks, texts, redact)
    problems = () if check is None or result.structured is UNSET else _problems(result.structured, check)
    return Prepared(blocks, (), problems)


def _whole_block(block: Block, redact: Redactor | None) -> Block:
    if isinstance(block, LargeBlock):
        if first_byte(memoryview(block.raw)) == b"[":
            return TextBlock("[there are more blocks of content than are shown]")
        block = read_block(block.raw)
    if not redact:
        return block
    if isinstance(block, UnknownBlock):
        return UnknownBlock(redact.value(block.value))
    if isinstance(block, ResourceBlock):
        return ResourceBlock(redact.struct(block.resource, BASE64_FIELDS))
    return block if isinstance(block, LargeBlock) else redact.struct(block, BASE64_FIELDS)


def _in_order(parts: Parts, text: str, redact: Redactor | None) -> list[Block]:
    """Texts and images in their order; very many texts are joined to one."""
    if len(parts.shown) > BLOCK_COUNT_LIMIT:
        images = [part for part in parts.shown if isinstance(part, ImageBlock)]
        if redact:
            text = "\n".join(redact.texts([_text(part, redact) for part in parts.texts]))
        return [TextBlock(text), *images]
    return [part if isinstance(part, ImageBlock) else TextBlock(_text(part, redact)) for part in parts.shown]


def _text(source: Source, redact: Redactor | None) -> str:
    if isinstance(source, Plain) and not redact:
        return source.text
    return b"".join(Joined((source,), redact).pieces()).decode("utf-8", "replace")


def _notes(notes: list[str]) -> list[str]:
    if len(notes) <= NOTE_LIMIT:
        return notes
    return [*notes[:NOTE_LIMIT], f"[{len(notes) - NOTE_LIMIT} more remarks about data are left out]"]


def _structured(value: Any, texts: tuple[Source, ...]) -> Source | None:
    """The structured content as text, unless the blocks already contain it."""
    if value is UNSET or value is None:
        return None
    if isinstance(value, Undecoded):
        source = RawJson(memoryview(value.raw))
        return None if is_in_large_texts(source, texts) else source
    if all(isinstance(text, Plain) for text in texts) and is_in_texts(
        value, [text.text for text in texts if isinstance(text, Plain)]
    ):
        return None
    return Plain(_as_json(value))


def _as_json(value: Any) -> str:
    """The value as JSON. It is cleaned before it is encoded, because control characters are not found in JSON
    escapes."""
    with contextlib.suppress(RecursionError):
        value = value_for_model(value)
    return msgspec.json.encode(value).decode()


def _problems(structured: Any, check: OutputCheck) -> tuple[str, ...]:
    if isinstance(structured, Undecoded):
        if structured.size_bytes > CHECKED_LIMIT_BYTES:
            return (f"structuredContent was not checked: it has {structured.size_bytes} bytes",)
        try:
            structured = structured.decode()
        except Unreadable as problem:
            return (f"structuredContent was not checked: {problem.detail}",)
    return tuple(check(structured))[:PROBLEM_LIMIT]
