"""Describes for people how a tool changed. Pure.

Shows removed and added lines of a description, parameters by name, and annotations with old and new values.
`lock.py` decides what counts as a change. All text is safe for a terminal, and the whole is short.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, cast

from dragoman.catalog.lock import Change
from dragoman.catalog.tools import is_same
from dragoman.cleaning import one_line, visible
from dragoman.json_values import as_list, as_object

LINE_LIMIT: Final = 80
"""The maximum number of lines about one part."""
TEXT_LINES_LIMIT: Final = 400
WIDTH_LIMIT: Final = 160
VALUE_LIMIT: Final = 80
DEPTH_LIMIT: Final = 20

_TITLES: Final = {
    "title": "title",
    "description": "description",
    "inputSchema": "parameters",
    "outputSchema": "result",
    "annotations": "annotations",
    "icons": "icons",
    "execution": "execution",
    "arguments": "arguments",
    "displayName": "name",
    "mimeType": "mimeType",
    "_meta": "_meta",
}

Json = Mapping[str, Any]


def describe(change: Change) -> str:
    """The change in lines: old ones begin with `-`, new ones with `+`."""
    head = f"{change.kind}: {one_line(change.server, 100)} / {one_line(change.tool, 100)}"
    return "\n".join([head, *(f"  {line}" for line in _body(change))])


def _body(change: Change) -> Iterator[str]:
    if change.kind != "changed":
        definition = change.after or change.before or {}
        yield from _marked("+" if change.kind == "added" else "-", _text_of(definition))
    elif change.before is None:
        yield "its definition (what it was is too large to be kept)"
    for part in change.parts:
        yield _TITLES[part]
        old, new = (change.before or {}).get(part), (change.after or {}).get(part)
        yield from _bounded(f"  {line}" for line in _part_lines(part, old, new))


def _part_lines(part: str, old: Any, new: Any) -> Iterator[str]:
    if part in ("annotations", "execution", "_meta"):
        return _value_lines(as_object(old), as_object(new))
    if part in ("icons", "arguments"):
        return _value_lines({part: old}, {part: new})
    if part in ("inputSchema", "outputSchema"):
        return _schema_lines(as_object(old), as_object(new), "", DEPTH_LIMIT)
    return _text_lines(old, new)


# --- texts ---


def _text_of(definition: Json) -> str:
    text = definition.get("description")
    return text if isinstance(text, str) else ""


def _text_lines(old: Any, new: Any) -> Iterator[str]:
    before, after = (text if isinstance(text, str) else "" for text in (old, new))
    if before.split() == after.split():
        yield "(only white space differs)"
    first, second = _shown(before), _shown(after)
    if first == second:
        yield f"(differs after {TEXT_LINES_LIMIT} lines)"
    difference = islice(difflib.unified_diff(first, second, n=1, lineterm=""), 2, None)  # not its header
    yield from (f"{line[0]} {line[1:]}" for line in difference if not line.startswith("@@"))


def _marked(mark: str, text: str) -> Iterator[str]:
    return _bounded(f"{mark} {line}" for line in _shown(text) if line.strip())


def _shown(text: str) -> list[str]:
    """The text in short lines, so that a change in the middle of a long line is visible, and no line is cut.

    Unsafe characters are made visible before the comparison: texts that differ only in invisible characters
    must look different.
    """
    sentences = (part for line in text.split("\n") for part in _SENTENCE_END.split(line))
    pieces = (
        visible(part[at : at + WIDTH_LIMIT])
        for part in sentences
        for at in range(0, len(part) or 1, WIDTH_LIMIT)
    )
    return list(islice(pieces, TEXT_LINES_LIMIT))


_SENTENCE_END: Final = re.compile(r"(?<=[.!?;]) ")


# --- values and schemas ---


def _value_lines(old: Json, new: Json) -> Iterator[str]:
    for name in _all_names(old, new):
        if not _is_same(old, new, name):
            yield f"{one_line(name, 100)}: {_value(old, name)} → {_value(new, name)}"


def _schema_lines(old: Json, new: Json, where: str, depth: int) -> Iterator[str]:
    if not depth:
        yield f"{_place(where)}: changed, deep inside"
        return
    yield from _property_lines(old, new, where, depth)
    for keyword in _all_names(old, new):
        before, after = old.get(keyword), new.get(keyword)
        if keyword in ("properties", "required") or _is_same(old, new, keyword):
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            inner = f"{where}[]" if keyword == "items" else f"{where}/{keyword}"
            yield from _schema_lines(cast("Json", before), cast("Json", after), inner, depth - 1)
        elif keyword == "description":
            yield f"{_place(where)}: description"
            yield from (f"  {line}" for line in _text_lines(before, after))
        else:
            yield f"{_place(where)}: {one_line(keyword, 100)} {_value(old, keyword)} → {_value(new, keyword)}"


def _property_lines(old: Json, new: Json, where: str, depth: int) -> Iterator[str]:
    before, after = as_object(old.get("properties")), as_object(new.get("properties"))
    was_required, is_required = _names(old.get("required")), _names(new.get("required"))
    for name in _all_names(before, after, was_required, is_required):
        inner = f"{where}.{name}" if where else name
        if name not in before and name in after:
            need = "required" if name in is_required else "optional"
            yield f"{_place(inner)}: added, {need}{_summary(after[name])}"
        elif name in before and name not in after:
            yield f"{_place(inner)}: removed"
        elif (name in was_required) != (name in is_required):
            yield f"{_place(inner)}: {'now required' if name in is_required else 'no longer required'}"
        if name in before and name in after and not _is_same(before, after, name):
            yield from _schema_lines(as_object(before[name]), as_object(after[name]), inner, depth - 1)


def _summary(schema: Any) -> str:
    """The description of a new parameter."""
    part = as_object(schema)
    kind = f", {_short(part['type'])}" if "type" in part else ""
    text = _text_of(part)
    return f"{kind}: {one_line(text, WIDTH_LIMIT)}" if text else kind


def _place(where: str) -> str:
    return f"parameter `{one_line(where, 200)}`" if where else "as a whole"


def _value(owner: Json, name: str) -> str:
    return _short(owner[name]) if name in owner else "(not stated)"


def _short(value: Any) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), VALUE_LIMIT)


# --- untrusted values ---


def _is_same(old: Json, new: Json, name: str) -> bool:
    return (name in old) == (name in new) and is_same(old.get(name), new.get(name))


def _names(value: Any) -> dict[str, None]:
    return {name: None for name in as_list(value) if isinstance(name, str)}


def _all_names(*objects: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(name for each in objects for name in each))


def _bounded(lines: Iterator[str]) -> Iterator[str]:
    yield from islice(lines, LINE_LIMIT)
    if next(lines, None) is not None:
        yield "  … and more"
