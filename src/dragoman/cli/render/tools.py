"""Tools for people: a table that fits the terminal, and one tool whole.

Everything a server said is shown as it came, with what is invisible made visible.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import click

from dragoman.catalog.annotations import Risk
from dragoman.catalog.tokens import cost_of
from dragoman.catalog.tools import ServerTool
from dragoman.cleaning import one_line, visible
from dragoman.cli.render.columns import cells, filled, fitted, width

MARKS: Final[Mapping[Risk, tuple[str, str]]] = {
    "reads": ("○", "green"),
    "writes": ("●", "yellow"),
    "destroys": ("▲", "red"),
}
LEAST_ROOM: Final = 20


def show_table(tools: Sequence[ServerTool], *, schema: bool = False, cost: bool = False) -> None:
    longest = max((len(tool.name) for tool in tools), default=0)
    columns = width()
    room = None if columns is None else max(LEAST_ROOM, columns - longest - (15 if cost else 6))
    for tool in tools:
        mark, colour = MARKS[tool.hints.risk]
        tokens = f"{cost_of(tool):>7}  " if cost else ""
        line = f"  {click.style(mark, fg=colour)} {click.style(tool.name.ljust(longest), fg='cyan')}  "
        click.echo(f"{line}{tokens}{fitted(_about(tool), room)}".rstrip())
        if schema:
            for row in visible(json.dumps(tool.input_schema, indent=2, ensure_ascii=False)).split("\n"):
                click.echo(f"      {click.style(row, dim=True)}")


def show_legend(tools: Sequence[ServerTool], *, cost: bool = False) -> None:
    """What the marks mean, and how much all of it is."""
    if cost:
        total = sum(map(cost_of, tools))
        click.echo(
            f"  about {total} tokens for {len(tools)} tools, if a model is given all of them", err=True
        )
    if width() is not None:
        words = "  ".join(f"{click.style(mark, fg=colour)} {risk}" for risk, (mark, colour) in MARKS.items())
        click.echo(click.style("  by their own word: ", dim=True) + words)


def show_tool(tool: ServerTool) -> None:
    """All there is to know about one tool."""
    mark, colour = MARKS[tool.hints.risk]
    click.echo(f"{click.style(mark, fg=colour)} {click.style(tool.name, fg='cyan', bold=True)}")
    click.echo(
        f"  {one_line(_title(tool), 200)} · {one_line(tool.wire_name, 200)} of {one_line(tool.server)}"
    )
    click.echo(f"  {_in_words(tool)}")
    if tool.definition.description:
        click.echo()
        for row in visible(tool.definition.description).split("\n"):
            click.echo(f"  {row}".rstrip())
    rows = list(_parameters(tool.input_schema))
    click.echo(click.style("\n  Parameters", bold=True) + ("" if rows else ": none"))
    _show_rows(rows)
    if tool.output_schema:
        click.echo(click.style("\n  Result", bold=True))
        _show_rows(list(_parameters(tool.output_schema)))
    click.echo(f"\n  about {cost_of(tool)} tokens · sha256 {tool.digest[:16]}")


def _show_rows(rows: list[tuple[str, str, str]]) -> None:
    columns = width()
    names = max((cells(name) for name, _, _ in rows), default=0)
    kinds = max((cells(kind) for _, kind, _ in rows), default=0)
    room = None if columns is None else max(LEAST_ROOM, columns - names - kinds - 8)
    for name, kind, about in rows:
        line = (
            f"    {click.style(filled(name, names), fg='cyan')}  {filled(kind, kinds)}  {fitted(about, room)}"
        )
        click.echo(line.rstrip())


def _parameters(schema: Mapping[str, Any]) -> Iterable[tuple[str, str, str]]:
    """Name (with a star if it is required), type, and what it is for."""
    required = schema.get("required")
    wanted: list[Any] = cast("list[Any]", required) if isinstance(required, list) else []
    properties = schema.get("properties")
    parts = cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}
    for name, part in parts.items():
        described: Mapping[str, Any] = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
        star = "*" if name in wanted else ""
        about = described.get("description")
        yield one_line(name, 60) + star, _kind(described), one_line(about) if isinstance(about, str) else ""


def _kind(part: Mapping[str, Any]) -> str:
    choices = part.get("enum")
    if isinstance(choices, list):
        return one_line(" | ".join(json.dumps(each) for each in cast("list[Any]", choices)[:6]), 60)
    kind = part.get("type")
    if isinstance(kind, list):
        return one_line(" | ".join(map(str, cast("list[Any]", kind))), 60)
    return one_line(kind, 60) if isinstance(kind, str) else "any"


_RISKS: Final[Mapping[Risk, str]] = {
    "reads": "only reads",
    "writes": "may change things",
    "destroys": "may destroy things",
}


def _in_words(tool: ServerTool) -> str:
    hints = tool.hints
    if not tool.annotations:
        return "says nothing about its risk"
    more = ", reaches outside" if hints.open_world else ", stays inside"
    again = ", may be repeated" if hints.idempotent and not hints.read_only else ""
    return f"{_RISKS[hints.risk]}{more}{again} (by its own word)"


def _title(tool: ServerTool) -> str:
    return tool.definition.title or tool.title


def _about(tool: ServerTool) -> str:
    return one_line((tool.definition.description or "").strip().partition("\n")[0])
