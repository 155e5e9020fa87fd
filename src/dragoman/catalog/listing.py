"""Reads a server's list of tools and decides which definitions are usable.

An invalid definition is dropped with its reason; the others are not affected. `paging.py` reads pages;
`servers/lists.py` decides when to read.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, cast

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
from dragoman.cleaning import for_model, one_line
from dragoman.content.redact import HIDING, Redactor
from dragoman.wire.codec import DECODE_ERRORS, Unreadable, decode_as, split_as
from dragoman.wire.messages import ABSENT, PlainToolDefinition, ToolDefinition
from dragoman.wire.mirroring import KEYWORD, BadMirror, mirrored

KEYWORD_BYTES: Final = KEYWORD.encode()
_RAW_FIELDS: Final = ("input_schema", "output_schema", "icons", "execution")
PROBLEM_LIMIT: Final = 100
NAME_LIMIT: Final = 1024
PIECE_BYTES: Final = 5000
"""Definitions up to this total size are decoded together: `is_slow` need not check so few bytes."""
LARGE_BYTES: Final = 256 * 1024
"""Pages from this size on are searched for secrets in steps that let the event loop run."""


ToolList = Listing[ToolDefinition]
"""The tools of one server, and the problems: definitions that were left out."""


async def read_list(
    fetch_page: FetchPage, *, mirrors: bool = False, redact: Redactor | None = None
) -> ToolList:
    """Reads all pages of a server's `tools/list`, within limits. Pages that were read before an error are
    kept.

    `mirrors`: whether headers repeat arguments; then a tool with an invalid declaration for that is left out.
    `redact`: removes secrets from definitions.
    """
    has_secrets = False

    async def fetch(params: Mapping[str, Any]) -> Raw:
        nonlocal has_secrets
        raw = await fetch_page(params)
        if redact and not has_secrets:
            has_secrets = await _may_be_in(bytes(raw), redact)
        return raw

    pages = await read_pages(fetch, "tools", "tools", undecoded)
    definitions: dict[str, ToolDefinition] = {}
    problems: list[str] = []
    steps = Steps()
    for piece in _pieces(pages.items):
        _read_piece(piece, definitions, problems, mirrors)
        await steps.after(*piece)
    described = _shortened([*problems, *pages.problems])
    if redact:  # an error of the server may repeat a secret
        described = tuple(map(redact.text, described))
    listed = ToolList(
        tuple(definitions.values()), described, pages.is_whole, pages.ttl_seconds, pages.failure
    )
    # Searching each of thousands of definitions takes long, and hardly any contains a secret.
    return await _covered_in_steps(listed, redact) if redact and has_secrets else listed


async def _may_be_in(data: bytes, redact: Redactor) -> bool:
    if HIDING.search(data):
        return True
    for spelling in redact.spellings:
        if spelling in data:
            return True
        if len(data) > LARGE_BYTES:
            await asyncio.sleep(0)
    return False


def covered(listed: ToolList, redact: Redactor) -> ToolList:
    """The list without secrets. A tool whose name contains a secret is left out, because a call would reveal
    it."""
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
    """The definition without secrets; None if the tool's name contains one."""
    if redact.text(definition.name) != definition.name:
        return None
    found = redact.struct(definition, frozenset({"name"}))
    if not definition.is_plain:
        found = _covered_as_shown(found, redact)
    schemas = {
        name: Raw(msgspec.json.encode(redact.value(decode_as(object, raw))))
        for name in _RAW_FIELDS
        if (raw := getattr(found, name)) is not ABSENT and redact.may_be_in_json(bytes(raw))
    }
    return structs.replace(found, **schemas) if schemas else found


def _covered_as_shown(definition: ToolDefinition, redact: Redactor) -> ToolDefinition:
    """The definition without secrets that appear only in the cleaned text: a secret with invisible characters
    inside becomes readable when the text is cleaned for a model."""
    changed: dict[str, Any] = {}
    for name in ("title", "description", "annotations", "meta"):
        field = getattr(definition, name, None)
        if field is not None and (shown := _value_as_shown(field, redact)) != field:
            changed[name] = shown
    for name in _RAW_FIELDS:
        raw = getattr(definition, name)
        if raw is ABSENT:
            continue
        schema = decode_as(object, raw)
        if (shown := _value_as_shown(schema, redact)) != schema:
            changed[name] = Raw(msgspec.json.encode(shown))
    return structs.replace(definition, **changed) if changed else definition


def _value_as_shown(value: Any, redact: Redactor) -> Any:
    """The value, in which each text that contains a secret after cleaning is replaced by the text without
    it."""
    if isinstance(value, str):
        cleaned = for_model(value)
        covered = redact.text(cleaned)
        return value if covered == cleaned else covered
    if isinstance(value, list | tuple):
        return [_value_as_shown(item, redact) for item in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        return {_value_as_shown(key, redact): _value_as_shown(item, redact) for key, item in members.items()}
    return value


def _shortened(problems: Sequence[str]) -> tuple[str, ...]:
    if len(problems) <= PROBLEM_LIMIT:
        return tuple(problems)
    more = len(problems) - PROBLEM_LIMIT
    return (*problems[: PROBLEM_LIMIT - 1], problems[-1], f"and {more} problems more")


def read_definitions(
    items: Iterable[Raw], definitions: dict[str, ToolDefinition], problems: list[str]
) -> None:
    """Adds the usable definitions, and a problem for each of the others."""
    for piece in _pieces(items):
        _read_piece(piece, definitions, problems, mirrors=False)


def _pieces(items: Iterable[Raw]) -> Iterator[list[Raw]]:
    """The items in order, in groups that are decoded together."""
    piece: list[Raw] = []
    size = 0
    for item in items:
        size += len(item) + 1
        if size > PIECE_BYTES and piece:
            yield piece
            piece, size = [], len(item) + 1
        piece.append(item)
    if piece:
        yield piece


def _read_piece(
    items: Sequence[Raw], definitions: dict[str, ToolDefinition], problems: list[str], mirrors: bool
) -> None:
    ordinary = _ordinary(items)
    if ordinary is None and len(items) > 1:  # one of them is unusual: each separately
        for item in items:
            _read_piece((item,), definitions, problems, mirrors)
        return
    for item, known in zip(items, ordinary or (None,)):
        # The common case: its text is plain, so its name needs no further check.
        if known is not None and (name := known.name) not in definitions and _is_fine_name(name):
            definitions[name] = known
            continue
        try:
            definition = known or definition_as(ToolDefinition, item)
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


def _ordinary(items: Sequence[Raw]) -> Sequence[ToolDefinition] | None:
    """The definitions; None if one needs the detailed checks. There may be thousands, and hardly any needs
    them."""
    data = b"[%b]" % b",".join(items)
    if len(data) > DEFINITION_LIMIT_BYTES or not _is_plain(data):
        return None
    try:
        _decode_ordinary(data)
        return decode_as(list[PlainToolDefinition], data)
    except (Unreadable, *DECODE_ERRORS):
        return None


class _Part(msgspec.Struct, gc=False):
    """Any object; its members are not kept."""


class _Shape(msgspec.Struct, gc=False):
    """The structure of an ordinary input schema; deeper parts are skipped."""

    type: Literal["object"] = "object"
    properties: dict[str, _Part] = {}
    required: list[str] = []


class _Ordinary(msgspec.Struct, gc=False, rename="camel"):
    input_schema: _Shape


_is_fine_name = re.compile(rf"[\w.-]{{1,{NAME_LIMIT}}}", re.ASCII).fullmatch
_decode_shape = msgspec.json.Decoder(_Shape).decode
_decode_ordinary = msgspec.json.Decoder(list[_Ordinary]).decode


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
    """Whether it has no invisible characters (only ASCII, no escapes) and nothing that is repeated as a
    header."""
    return data.isascii() and b"\\" not in data and b"\x7f" not in data and KEYWORD_BYTES not in data


def _why_odd(data: bytes, mirrors: bool) -> str | None:
    """Why the schema cannot be used, by the detailed checks; None if it can."""
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
    """Why the schema cannot describe arguments; None if it can. The validator checks the details."""
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
