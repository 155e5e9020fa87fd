"""Makes the calls of models for all adapters, and converts outcomes to parts that model APIs accept.

Every call of a model gets an answer, because APIs refuse a conversation in which an answer is missing.
Therefore the loss of a server is reported to the model; only the error of a closed host and cancellation are
raised. Texts are cleaned and never empty, and images have a format that model APIs accept.
"""

from __future__ import annotations

import base64
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, Protocol, cast

import msgspec

from dragoman.calls.outcome import CallOutcome, outcome_of_error
from dragoman.catalog.tools import FOR_APPS, Tool
from dragoman.cleaning import for_model
from dragoman.content.blocks import Block, ImageBlock
from dragoman.errors import CallError, InvalidArguments, UnknownTool
from dragoman.wire.codec import DECODE_ERRORS

NO_OUTPUT: Final = "(no output)"


class ToolCaller(Protocol):
    """The owner of the tools: a host, the servers of an agent, or the toolbox of a conversation."""

    def tools(self) -> Sequence[Tool]: ...
    def is_app_tool(self, name: str) -> bool: ...
    def call(
        self, name: str, arguments: Mapping[str, Any], *, call_id: str | None = None
    ) -> Coroutine[Any, Any, CallOutcome]: ...


async def make_call(
    caller: ToolCaller, name: str, arguments: object, call_id: str | None = None
) -> CallOutcome:
    """Makes a call of a model. `arguments` may be JSON text, and may be invalid. `call_id`: the id of the
    call in the model's API, for events and hooks."""
    if caller.is_app_tool(name):
        return outcome_of_error("", name, UnknownTool(name, left_out=FOR_APPS))
    try:
        return await caller.call(name, _as_object(name, arguments), call_id=call_id)
    except CallError as error:
        return outcome_of_error(error.server or "", name, error)


def parts_of(outcome: CallOutcome) -> list[str | ImageBlock]:
    """The texts and images of an outcome, at least one. Errors have text only, because APIs refuse images in
    errors."""
    parts = [_part(block, with_images=not outcome.is_error) for block in outcome.content]
    if not outcome.content and outcome.has_structured:
        parts = [for_model(msgspec.json.encode(outcome.structured).decode())]
    return [part for part in parts if part] or [NO_OUTPUT]


def all_text(parts: list[str | ImageBlock]) -> bool:
    return all(isinstance(part, str) for part in parts)


def text_of(outcome: CallOutcome) -> str:
    """The outcome as one text, with a description in place of each image."""
    return "\n".join(part if isinstance(part, str) else part.as_text() for part in parts_of(outcome))


def shortened(tool: Tool, limit: int) -> str:
    """The description of a tool, cut to the limit of an API."""
    return for_model(tool.description, limit)


def _as_object(name: str, arguments: object) -> Mapping[str, Any]:
    if isinstance(arguments, str | bytes):
        try:
            arguments = msgspec.json.decode(arguments.strip() or "{}")
        except DECODE_ERRORS as error:
            raise InvalidArguments("", name, (f"they are not valid JSON ({error})",)) from None
    if not isinstance(arguments, Mapping):
        raise InvalidArguments("", name, ("they are not a JSON object",))
    return cast("Mapping[str, Any]", arguments)


def _part(block: Block, *, with_images: bool) -> str | ImageBlock:
    if with_images and isinstance(block, ImageBlock) and (kind := _kind_of_image(block)):
        return ImageBlock(data=block.data, mime_type=kind)
    text = for_model(block.as_text())
    return text if text.strip() else ""


def _kind_of_image(block: ImageBlock) -> str | None:
    """The media type, detected from the first bytes; None if it is a type that APIs refuse."""
    try:
        start = base64.b64decode(block.data, validate=True)[:12]
    except ValueError:
        return None
    if start[:4] == b"RIFF" and start[8:] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)


_MAGIC: Final = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
