"""The parameters and results of a tool as rows of a table, nested ones included.

A schema is shown as its server wrote it, with invisible characters made visible. A part that is not a valid
schema is treated as an empty one. The number of rows is bounded, however deep or wide the schema is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from dragoman.catalog.schemas.references import References
from dragoman.cleaning import one_line
from dragoman.cli.render.columns import TableRow
from dragoman.json_values import as_list, as_object

ROW_LIMIT: Final = 100
DEPTH_LIMIT: Final = 5
CHOICE_LIMIT: Final = 50
VALUE_LIMIT: Final = 300
SIGNATURE_LIMIT: Final = 12
SHORT: Final = 32
"""The most columns of choices that are shown in place of a parameter's type."""

Json = Mapping[str, Any]


def parameters(schema: Json) -> list[TableRow]:
    """A row for each parameter: name (with a star if it is required), type, and description."""
    rows = _inside(schema, References(dict(schema)), "", DEPTH_LIMIT)
    found = list(islice(rows, ROW_LIMIT))
    if next(rows, None) is not None:
        found.append(TableRow("…", "", "and more: --json shows the whole schema"))
    return found


def signature(schema: Json) -> str:
    """The parameters on one line, as in `(a: number, note?: string)`."""
    wanted = as_list(schema.get("required"))
    shown: list[str] = []
    root = References(dict(schema))
    properties = as_object(schema.get("properties"))
    if not properties:
        return ""
    for name, value in islice(properties.items(), SIGNATURE_LIMIT):
        kind = _kind(_resolved(value, root), root, DEPTH_LIMIT)
        kind = kind if len(kind) <= SHORT else "choice"
        shown.append(f"{one_line(name, 60)}{'' if name in wanted else '?'}: {kind}")
    return f"({', '.join([*shown, *['…'] * (len(properties) > SIGNATURE_LIMIT)])})"


def _inside(part: Json, root: References, where: str, depth: int) -> Iterator[TableRow]:
    if not depth:
        return
    wanted = as_list(part.get("required"))
    for name, value in as_object(part.get("properties")).items():
        described = _resolved(value, root)
        place = f"{where}.{name}" if where else name
        yield _row(place + ("*" if name in wanted else ""), described, root)
        yield from _inside(described, root, place, depth - 1)
        items = _resolved(described.get("items"), root)
        yield from _inside(items, root, f"{place}[]", depth - 1)


def _row(place: str, part: Json, root: References) -> TableRow:
    kind, about = _kind(part, root, DEPTH_LIMIT), part.get("description")
    text = one_line(about.strip()) if isinstance(about, str) else ""
    if len(kind) > SHORT:
        text = f"{text.rstrip('.')}. One of: {kind}".removeprefix(". ")
        kind = "choice"
    if "default" in part:
        text = f"{text} (default {_value(part['default'])})".strip()
    return TableRow(one_line(place, 300), kind, text)


def _kind(part: Json, root: References, depth: int) -> str:
    choices = [part["const"]] if "const" in part else as_list(part.get("enum"))
    if choices:
        more = f" | … {len(choices) - CHOICE_LIMIT} more" if len(choices) > CHOICE_LIMIT else ""
        return " | ".join(map(_value, choices[:CHOICE_LIMIT])) + more
    branches = as_list(part.get("anyOf")) or as_list(part.get("oneOf"))
    if branches and depth:
        kinds = (_kind(_resolved(branch, root), root, depth - 1) for branch in branches[:CHOICE_LIMIT])
        return " | ".join(dict.fromkeys(kinds))
    kinds = as_list(part.get("type")) or [part.get("type")]
    shown = " | ".join(one_line(kind, 40) for kind in kinds[:CHOICE_LIMIT] if isinstance(kind, str)) or "any"
    items = _resolved(part.get("items"), root)
    return f"{shown} of {_kind(items, root, depth - 1)}" if shown == "array" and items and depth else shown


def _value(value: Any) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), VALUE_LIMIT)


def _resolved(value: Any, root: References) -> Json:
    """The part itself, or the definition in the same schema that it refers to."""
    part = as_object(value)
    if "$ref" not in part:
        return part
    found = as_object(root.find(part["$ref"]))
    return {**found, **{key: value for key, value in part.items() if key != "$ref"}}
