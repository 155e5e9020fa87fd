"""Tools as text: a table that fits the terminal, and one tool in full.

Text from servers is shown as it was sent, with invisible characters escaped. A part of a schema that is not
valid is treated as an empty one. The number of rows is bounded, however deep or wide a schema is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import click

from dragoman.catalog.annotations import Risk
from dragoman.catalog.schemas.references import References
from dragoman.catalog.tokens import cost_of
from dragoman.catalog.tools import ServerTool
from dragoman.cleaning import one_line, visible
from dragoman.cli.render.columns import TableRow, table, width, wrapped
from dragoman.cli.render.servers import counted
from dragoman.json_values import as_list, as_object

MARKS: Final[Mapping[Risk, tuple[str, str]]] = {
    "reads": ("○", "green"),
    "writes": ("●", "yellow"),
    "destroys": ("▲", "red"),
}


def show_table(
    tools: Sequence[ServerTool], *, schema: bool = False, cost: bool = False, full: bool = False
) -> None:
    costs = [str(cost_of(tool)) if cost else "" for tool in tools]
    longest = max(map(len, costs), default=0)
    rows = [
        TableRow(
            tool.name,
            tokens.rjust(longest),
            _about(tool),
            *MARKS[tool.hints.risk],
            suffix=signature(tool.input_schema),
        )
        for tool, tokens in zip(tools, costs)
    ]
    for tool, lines in zip(tools, table(rows, width(full=full), full=full)):
        for line in lines:
            click.echo(line)
        if schema:
            for row in visible(json.dumps(tool.input_schema, indent=2, ensure_ascii=False)).split("\n"):
                click.echo(f"      {click.style(row, dim=True)}")


def show_legend(tools: Sequence[ServerTool], *, cost: bool = False) -> None:
    """Prints the meaning of the marks, and the size of all tools."""
    if cost:
        total, number = sum(map(cost_of, tools)), counted(len(tools), "tool")
        click.echo(f"  about {total} tokens for {number}, if a model is given all of them", err=True)
    if sys.stdout.isatty():
        words = "  ".join(f"{click.style(*MARKS[risk])} {_RISKS[risk]}" for risk in MARKS)
        click.echo(click.style("  declared: ", dim=True) + words)


def show_tool(tool: ServerTool) -> None:
    mark, colour = MARKS[tool.hints.risk]
    click.echo(f"{click.style(mark, fg=colour)} {click.style(tool.name, fg='cyan', bold=True)}")
    title, own = one_line(_title(tool), 200), one_line(tool.wire_name, 200)
    _show_text(f"{'' if title == own else f'{title} · '}{own} of {one_line(tool.server)}")
    _show_text(_in_words(tool))
    if tool.definition.description:
        click.echo()
        for row in visible(tool.definition.description.rstrip()).split("\n"):
            _show_text(row)
    _show_parameters("Parameters", parameters(tool.input_schema))
    if tool.output_schema:
        _show_parameters("Result", parameters(tool.output_schema))
    click.echo(f"\n  about {cost_of(tool)} tokens · sha256 {tool.digest[:16]}")


def _show_text(row: str) -> None:
    columns = width()
    for line in wrapped(row, None if columns is None else columns - 2):
        click.echo(f"  {line}".rstrip())


def _show_parameters(heading: str, rows: list[TableRow]) -> None:
    click.echo(click.style(f"\n  {heading}", bold=True) + ("" if rows else ": none"))
    for lines in table(rows, width(), indent="    ", full=True):
        for line in lines:
            click.echo(line)
    if any(row.typed.endswith("*") for row in rows):
        click.echo(click.style("    * required", dim=True))


_RISKS: Final[Mapping[Risk, str]] = {
    "reads": "read-only",
    "writes": "not read-only",
    "destroys": "destructive",
}


_HINT_NAMES: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def _in_words(tool: ServerTool) -> str:
    hints = tool.hints
    if not any(isinstance(tool.annotations.get(name), bool) for name in _HINT_NAMES):
        return "no risk declared by the server"
    more = ", open world" if hints.open_world else ", closed world"
    again = ", idempotent" if hints.idempotent and not hints.read_only else ""
    return f"{_RISKS[hints.risk]}{more}{again} (declared by the server)"


def _title(tool: ServerTool) -> str:
    annotated = tool.annotations.get("title")
    return tool.definition.title or (annotated if isinstance(annotated, str) else "") or tool.wire_name


def _about(tool: ServerTool) -> str:
    """The first line of the description, or the title if there is none."""
    title = _title(tool)
    first_line = (tool.definition.description or "").strip().partition("\n")[0]
    return one_line(first_line or ("" if title == tool.wire_name else title))


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
    rows = _nested_rows(schema, References(dict(schema)), "", DEPTH_LIMIT)
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


def _nested_rows(part: Json, root: References, where: str, depth: int) -> Iterator[TableRow]:
    if not depth:
        return
    wanted = as_list(part.get("required"))
    for name, value in as_object(part.get("properties")).items():
        described = _resolved(value, root)
        place = f"{where}.{name}" if where else name
        yield _row(place + ("*" if name in wanted else ""), described, root)
        yield from _nested_rows(described, root, place, depth - 1)
        items = _resolved(described.get("items"), root)
        yield from _nested_rows(items, root, f"{place}[]", depth - 1)


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
