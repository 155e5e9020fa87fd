"""Cuts results that are too large for the models of clients (`resultTokens` in the gateway's file).

A client of another machine cannot read files of this one, so nothing is saved: texts are cut with a mark, and
data that is not an image becomes a sentence. A result within the limit is passed on undecoded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, structs

from dragoman.calls.invoke import read_complete
from dragoman.content.budget import ResultLimits
from dragoman.content.media import Media
from dragoman.content.prepare import Preparer
from dragoman.content.result import Undecoded
from dragoman.content.saving import NotSaved, Saver
from dragoman.content.tokens import LEAST_SHARE, MOST_PER_CHARACTER, estimate
from dragoman.gateway.results import block_value, text_result
from dragoman.wire.codec import Unreadable
from dragoman.wire.server.service import Json, Result

CHARACTERS_PER_TOKEN: Final = 4


class ResultLimit:
    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._reason = f"this gateway limits results to {tokens} tokens"
        limits = ResultLimits(characters=CHARACTERS_PER_TOKEN * tokens, tokens=tokens)
        self._preparer = Preparer(Media(_NoSaver(self._reason)), limits=limits)

    async def applied(self, result: Result) -> Result:
        """The result, cut to the limit."""
        raw = result if isinstance(result, Raw) else Raw(msgspec.json.encode(result))
        if self._fits(raw):
            return result
        try:
            return await self._cut(raw)
        except Unreadable as problem:
            return text_result(f"the result is too large and cannot be cut: {problem.detail}", is_error=True)

    def _fits(self, data: Raw) -> bool:
        size = len(data)
        if size * MOST_PER_CHARACTER <= self._tokens:
            return True
        return size * LEAST_SHARE <= self._tokens and estimate(bytes(data)) <= self._tokens

    async def _cut(self, raw: Raw) -> Json:
        found, content = await read_complete(raw)
        cut: Json = {"isError": found.is_error}
        notes: list[Json] = []
        if found.structured is not UNSET:
            structured = await asyncio.to_thread(_encoded, found.structured)
            if self._fits(structured):
                cut["structuredContent"] = structured
            elif content:
                text = f"[structuredContent of {len(structured)} bytes is left out: {self._reason}]"
                notes.append({"type": "text", "text": text})
        is_text = content or "structuredContent" in cut
        given = structs.replace(found, structured=UNSET) if is_text else found
        prepared = await self._preparer.prepare(given, content)
        cut["content"] = [*(block_value(block) for block in prepared.content), *notes]
        if found.meta and not isinstance(found.meta, Undecoded):
            cut["_meta"] = found.meta
        return cut


def _encoded(structured: Any) -> Raw:
    return structured.raw if isinstance(structured, Undecoded) else Raw(msgspec.json.encode(structured))


class _NoSaver(Saver):
    def __init__(self, reason: str) -> None:
        super().__init__()
        self._reason = reason

    def save_pieces_now(
        self, pieces: Iterable[bytes], most_bytes: int, end: str, *, owner: str = ""
    ) -> tuple[Path, int]:
        raise NotSaved(self._reason)
