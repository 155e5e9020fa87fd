"""Servers while they live: a table that follows every change, or one line per change where nobody looks on.

I own: how a state is shown as it changes. What the states are is `connections/state.py`'s.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import time
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import click
import msgspec

from dragoman.cleaning import one_line
from dragoman.cli.render.servers import counted
from dragoman.events import Event, ServerEvent, ServerStateChanged, ToolsChanged
from dragoman.host import Host
from dragoman.view import ServerView

REPAINT_SECONDS: Final = 1.0
"""At least that often, for the ages."""
SHOWN: Final = (ServerStateChanged, ToolsChanged)

_MARKS: Final = {
    "connected": ("●", "green"),
    "pending": ("◐", "yellow"),
    "failed": ("✗", "red"),
    "needs-auth": ("!", "yellow"),
    "disabled": ("–", "white"),
}


async def watch(host: Host, *, as_json: bool) -> None:
    """Shows how the servers are until it is interrupted."""
    events = host.events()
    if as_json or not sys.stdout.isatty():
        await _print_changes(events, as_json=as_json)
    else:
        await _paint(host, events)


async def _print_changes(events: AsyncIterator[Event], *, as_json: bool) -> None:
    async for event in events:
        if isinstance(event, SHOWN):
            click.echo(_as_json(event) if as_json else _as_line(event))


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
    changed = asyncio.Event()
    listening = asyncio.create_task(_note(events, changed))
    painted = 0
    try:
        while True:
            changed.clear()
            size = shutil.get_terminal_size()
            lines = table(host.servers.values(), time.time(), size.columns)[: max(1, size.lines - 1)]
            click.echo((f"\x1b[{painted}F" if painted else "") + "\x1b[J" + "\n".join(lines))
            painted = len(lines)
            try:
                async with asyncio.timeout(REPAINT_SECONDS):
                    await changed.wait()
            except TimeoutError:
                continue
    finally:
        listening.cancel()


async def _note(events: AsyncIterator[Event], changed: asyncio.Event) -> None:
    async for event in events:
        if isinstance(event, SHOWN):
            changed.set()


def table(views: Iterable[ServerView], now: float, width: int) -> list[str]:
    """The servers by name, one line each, cut to the width."""
    listed = sorted(views, key=lambda view: view.name)
    if not listed:
        return ["No servers are configured. Add one with `dragoman mcp add`."]
    names = [one_line(view.name, 40) for view in listed]
    kinds = [view.transport for view in listed]
    states = [_state(view) for view in listed]
    room = [max(map(len, column)) for column in (names, kinds, [*states, "reconnecting"])]
    return [
        _line(view, (name, kind, state), room, now, width)
        for view, name, kind, state in zip(listed, names, kinds, states)
    ]


def _line(view: ServerView, cells: tuple[str, str, str], room: list[int], now: float, width: int) -> str:
    mark, colour = _MARKS.get(view.status, ("?", "white"))
    name, kind, state = (f"{cell:<{size}}" for cell, size in zip(cells, room))
    tail = f"{age(now - view.since):>4}  {_details(view)}"
    left = max(10, width - 2 - sum(room) - 3 * 2)
    if len(tail) > left:
        tail = tail[: left - 1] + "…"
    return (
        f"{click.style(mark, fg=colour)} {click.style(name, bold=True)}  {kind}"
        f"  {click.style(state, fg=colour)}  {tail.rstrip()}"
    )


def _state(view: ServerView) -> str:
    if view.phase == "reconnecting":
        return f"reconnecting ({view.attempt})" if view.attempt else "reconnecting"
    return view.phase or view.status


def _details(view: ServerView) -> str:
    if view.status == "connected":
        return f"{counted(view.tool_count, 'tool')}, {view.protocol_version}"
    return one_line((view.reason or "").removeprefix(f"{view.name}: "), 300)


def age(seconds: float) -> str:
    """How long, in the largest unit that says it well."""
    seconds = max(0, int(seconds))
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
