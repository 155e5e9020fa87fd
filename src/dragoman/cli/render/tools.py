"""Tools as text: a table that fits the terminal, and one tool in full.

Text from servers is shown as it was sent, with invisible characters escaped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import click

from dragoman.catalog.annotations import Risk
from dragoman.catalog.tokens import cost_of
from dragoman.catalog.tools import ServerTool
from dragoman.cleaning import one_line, visible
from dragoman.cli.render.columns import TableRow, table, width, wrapped
from dragoman.cli.render.parameters import parameters, signature
from dragoman.cli.render.servers import counted

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
