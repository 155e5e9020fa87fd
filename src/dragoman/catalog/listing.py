"""Reads a server's list of tools and decides which definitions are usable.

An invalid definition is dropped with its reason; the others are not affected. `paging.py` reads pages;
`servers/lists.py` decides when to read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw, structs

from dragoman.catalog.paging import (
    DEFINITION_LIMIT_BYTES,
    FetchPage,
    Listing,
    Steps,
    definition_as,
    read_pages,
    scalar,
    undecoded,
)
from dragoman.catalog.schemas import unsafe_names
from dragoman.cleaning import one_line
from dragoman.content.redact import Redactor
from dragoman.wire.codec import DECODE_ERRORS, Unreadable, decode_as, split_as
from dragoman.wire.messages import ABSENT, PlainToolDefinition, ToolDefinition
from dragoman.wire.mirroring import KEYWORD, BadMirror, mirrored

KEYWORD_BYTES: Final = KEYWORD.encode()
PROBLEM_LIMIT: Final = 100
NAME_LIMIT: Final = 1024
LARGE_BYTES: Final = 256 * 1024
"""Pages from this size on are searched for secrets in steps that let the event loop run."""


ToolList = Listing[ToolDefinition]
"""What one server offers, and what of it had to be left out."""


async def read_list(
    fetch_page: FetchPage, *, mirrors: bool = False, redact: Redactor | None = None
) -> ToolList:
    """All pages of a server's `tools/list`, bounded. What was read before an error is kept.

    `mirrors`: headers repeat arguments, so a tool that asks for that in a wrong way is left out. `redact`:
    takes secrets out of definitions.
    """
    says_secrets = False

    async def fetch(params: Mapping[str, Any]) -> Raw:
        nonlocal says_secrets
        raw = await fetch_page(params)
        if redact and not says_secrets:
            says_secrets = await _is_in(bytes(raw), redact)
        return raw

    pages = await read_pages(fetch, "tools", "tools", undecoded)
    definitions: dict[str, ToolDefinition] = {}
    problems: list[str] = []
    steps = Steps()
    for item in pages.items:
        read_definitions((item,), definitions, problems, mirrors=mirrors)
        await steps.after(item)
    told = _shortened([*problems, *pages.problems])
    if redact:  # an error of the server may repeat a secret
        told = tuple(map(redact.text, told))
    listed = ToolList(tuple(definitions.values()), told, pages.is_whole, pages.ttl_seconds, pages.failure)
    # Looking into each of thousands of definitions takes long, and hardly any says a secret.
    return await _covered_in_steps(listed, redact) if redact and says_secrets else listed


async def _is_in(data: bytes, redact: Redactor) -> bool:
    for spelling in redact.spellings:
        if spelling in data:
            return True
        if len(data) > LARGE_BYTES:
            await asyncio.sleep(0)
    return False


def covered(listed: ToolList, redact: Redactor) -> ToolList:
    """The list without secrets. A tool whose name is one could not be called without saying it: it is left
    out."""
    return _with_covered(listed, [_covered(each, redact) for each in listed.items], redact)


async def _covered_in_steps(listed: ToolList, redact: Redactor) -> ToolList:
    found: list[ToolDefinition | None] = []
    for definition in listed.items:
        found.append(_covered(definition, redact))
        await asyncio.sleep(0)
    return _with_covered(listed, found, redact)


def _with_covered(
    listed: ToolList, definitions: Sequence[ToolDefinition | None], redact: Redactor
) -> ToolList:
    kept = tuple(each for each in definitions if each is not None)
    problems = [redact.text(problem) for problem in listed.problems]
    left_out = "a tool is left out: its name holds a secret of the server's entry"
    problems += [left_out] * (len(definitions) - len(kept))
    return structs.replace(listed, items=kept, problems=tuple(problems))


def _covered(definition: ToolDefinition, redact: Redactor) -> ToolDefinition | None:
    """None if its name holds a secret."""
    if redact.text(definition.name) != definition.name:
        return None
    found = redact.struct(definition, frozenset({"name"}))
    schemas = {
        name: Raw(msgspec.json.encode(redact.value(decode_as(object, raw))))
        for name in ("input_schema", "output_schema")
        if (raw := getattr(found, name)) is not ABSENT and redact.is_in(bytes(raw))
    }
    return structs.replace(found, **schemas) if schemas else found


def _shortened(problems: Sequence[str]) -> tuple[str, ...]:
    if len(problems) <= PROBLEM_LIMIT:
        return tuple(problems)
    more = len(problems) - PROBLEM_LIMIT
    return (*problems[: PROBLEM_LIMIT - 1], problems[-1], f"and {more} problems more")


def read_definitions(
    items: Iterable[Raw],
    definitions: dict[str, ToolDefinition],
    problems: list[str],
    *,
    mirrors: bool = False,
) -> None:
    """Adds the usable definitions; says of each other one why it is not."""
    for item in items:
        try:
            definition = _ordinary(item) or definition_as(ToolDefinition, item)
        except Unreadable as error:
            problems.append(f"tool {_name_in(item)} is left out: {error.detail}")
            continue
        problem = _why_badly_named(definition)
        if problem is None and not definition.is_plain:
            problem = _why_unusable(definition, mirrors)
        if problem is None and definition.name in definitions:
            problem = "its name is used twice"
        if problem is None:
            definitions[definition.name] = definition
        else:
            problems.append(f"tool {one_line(definition.name, 80)!r} is left out: {problem}")


def _ordinary(item: Raw) -> ToolDefinition | None:
    """The definition, None if it needs a closer look. There may be thousands, and hardly any does."""
    data = bytes(item)
    if len(data) > DEFINITION_LIMIT_BYTES or not _is_plain(data):
        return None
    try:
        _decode_ordinary(data)
        return decode_as(PlainToolDefinition, data)
    except (Unreadable, *DECODE_ERRORS):
        return None


class _Part(msgspec.Struct, gc=False):
    """Any object; what is in it is not kept."""


class _Shape(msgspec.Struct, gc=False):
    """What an ordinary input schema looks like; what is deeper in it is passed over."""

    type: Literal["object"] = "object"
    properties: dict[str, _Part] = {}
    required: list[str] = []


class _Ordinary(msgspec.Struct, gc=False, rename="camel"):
    input_schema: _Shape


_decode_shape = msgspec.json.Decoder(_Shape).decode
_decode_ordinary = msgspec.json.Decoder(_Ordinary).decode


def _why_badly_named(definition: ToolDefinition) -> str | None:
    if not definition.name.strip():
        return "it has no name"
    if len(definition.name) > NAME_LIMIT:
        return f"its name is longer than {NAME_LIMIT} characters"
    if "\ufffd" in definition.name:
        return "its name has a lone surrogate, so it cannot be sent back"
    return None


def _why_unusable(definition: ToolDefinition, mirrors: bool) -> str | None:
    data = bytes(definition.input_schema)
    try:
        _decode_shape(data)
        return None if _is_plain(data) else _why_odd(data, mirrors)
    except DECODE_ERRORS:
        return _why_odd(data, mirrors)


def _is_plain(data: bytes) -> bool:
    """Whether nothing in it is invisible (nothing beyond ASCII, no escape), or repeated as a header."""
    return data.isascii() and b"\\" not in data and b"\x7f" not in data and KEYWORD_BYTES not in data


def _why_odd(data: bytes, mirrors: bool) -> str | None:
    """The same with a closer look, for the few schemas that need one."""
    try:
        schema = decode_as(dict[str, Any], data)
    except Unreadable as error:
        return f"its input schema is not a JSON object ({error.detail})"
    problem = _why_unusable_schema(schema)
    if problem is not None:
        return problem
    if hidden := unsafe_names(schema):
        return f"its parameter {one_line(hidden[0], 80)} has invisible or invalid characters in its name"
    try:
        if mirrors and KEYWORD_BYTES in data:
            mirrored(schema)
    except BadMirror as error:
        return str(error)
    return None


def _why_unusable_schema(schema: dict[str, Any]) -> str | None:
    """Whether arguments could ever be described by it. Finer points are left to the validator."""
    if schema.get("type", "object") != "object":
        return "its input schema does not describe an object"
    properties: Any = schema.get("properties", {})
    if not isinstance(properties, dict):
        return "the properties of its input schema are not an object"
    for name, part in properties.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(part, dict | bool):
            return f"its input schema has no usable schema for {one_line(str(name), 80)!r}"  # pyright: ignore[reportUnknownArgumentType]
    required: Any = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):  # pyright: ignore[reportUnknownVariableType]
        return "what its input schema requires is not a list of names"
    return None


def _name_in(raw: Raw) -> str:
    try:
        name: Any = scalar(split_as(_Named, raw).name)
    except Unreadable:
        name = None
    return repr(one_line(name, 80)) if isinstance(name, str) else "(without a name)"


class _Named(msgspec.Struct):
    name: Raw = ABSENT
