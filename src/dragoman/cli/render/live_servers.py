"""Shows servers while their states change: as a table that is redrawn, or, without a terminal, one line per
change.

`connections/state.py` defines the states.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from dragoman.cleaning import one_line
from dragoman.cli.render.columns import cells
from dragoman.cli.render.servers import counted
from dragoman.cli.terminal_output import is_animated, unescaped
from dragoman.events import Event, ServerEvent, ServerStateChanged, ToolsChanged
from dragoman.host import Host
from dragoman.servers.status import STATUS_MARKS, ServerStatus

if TYPE_CHECKING:
    from rich.console import RenderableType

REPAINT_SECONDS: Final = 1.0
"""The longest time between two paints, so that the shown ages are current."""
SHOWN: Final = (ServerStateChanged, ToolsChanged)
NARROW_COLUMNS: Final = 60
"""On a terminal with fewer columns, transport and age are left out to make room for the reason."""
ECHO_COLUMNS: Final = 3
"""The columns that stay free at the end of each line, for the `^C` that a terminal echoes there."""

_COLOURS: Final = {
    "connected": "green",
    "pending": "yellow",
    "failed": "red",
    "needs-auth": "yellow",
    "disabled": "white",
}


async def watch(host: Host, *, as_json: bool) -> None:
    """Shows the status of all servers until it is cancelled."""
    events = host.events()
    if as_json or not is_animated(sys.stdout):
        async for event in events:
            if isinstance(event, SHOWN):
                click.echo(_as_json(event) if as_json else _as_line(event))
    else:
        await _paint(host, events)


def _as_json(event: ServerEvent) -> str:
    facts: dict[str, Any] = msgspec.structs.asdict(event)
    return json.dumps({"event": type(event).__name__, "at": round(time.time(), 3), **facts})


def _as_line(event: ServerStateChanged | ToolsChanged) -> str:
    if isinstance(event, ToolsChanged):
        return f"{one_line(event.server, 60)}: {counted(event.tool_count, 'tool')}"
    state = event.phase or event.status
    why = f" ({one_line(event.reason, 300)})" if event.reason else ""
    return f"{one_line(event.server, 60)}: {state}{why}"


async def _paint(host: Host, events: AsyncIterator[Event]) -> None:
    from rich.console import Console
    from rich.live import Live

    changed = asyncio.Event()
    reading = asyncio.create_task(_note(events, changed))
    try:
        console = Console(file=unescaped(sys.stdout), highlight=False)
        with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
            while True:
                changed.clear()
                live.update(table(host.servers.values(), time.time(), console.width), refresh=True)
                try:
                    async with asyncio.timeout(REPAINT_SECONDS):
                        await changed.wait()
                except TimeoutError:
                    continue
    finally:
        reading.cancel()


async def _note(events: AsyncIterator[Event], changed: asyncio.Event) -> None:
    async for event in events:
        if isinstance(event, SHOWN):
            changed.set()


def table(views: Iterable[ServerStatus], now: float, columns: int) -> RenderableType:
    """The servers by name, one line each. Only the reason is cut to fit the terminal."""
    from rich.table import Table
    from rich.text import Text

    listed = sorted(views, key=lambda view: view.name)
    if not listed:
        return Text("No servers are configured. Add one with `dragoman mcp add`.")
    names = [one_line(view.name, 40) for view in listed]
    states = [_state(view) for view in listed]
    is_narrow = columns < NARROW_COLUMNS
    widths = [2 + max(map(cells, names)), max(map(len, [*states, "reconnecting"]))]
    if not is_narrow:
        widths[1:1] = [max(len(view.transport) for view in listed)]
        widths.append(4)
    grid = Table.grid(padding=(0, 2, 0, 0))
    for width in widths:
        grid.add_column(no_wrap=True, width=width)
    room = columns - sum(widths) - 2 * len(widths) - ECHO_COLUMNS
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=max(1, room))
    for view, name, state in zip(listed, names, states):
        mark, colour = STATUS_MARKS[view.status], _COLOURS[view.status]
        cells_of_row: list[RenderableType] = [
            Text.assemble((mark, colour), " ", (name, "bold")),
            Text(state, colour),
        ]
        if not is_narrow:
            cells_of_row[1:1] = [view.transport]
            cells_of_row.append(Text(age(now - view.since), justify="right"))
        grid.add_row(*cells_of_row, Text(_details(view), overflow="ellipsis", no_wrap=True))
    return grid


def _state(view: ServerStatus) -> str:
    if view.phase == "reconnecting":
        return f"reconnecting ({view.attempt})" if view.attempt else "reconnecting"
    return view.phase or view.status


def _details(view: ServerStatus) -> str:
    if view.status == "connected":
        return f"{counted(view.tool_count, 'tool')}, {view.protocol_version}"
    return one_line(view.own_reason, 300)


def age(seconds: float) -> str:
    """The duration in its largest suitable unit."""
    seconds = max(0, int(seconds))
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
