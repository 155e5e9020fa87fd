"""How far connecting has come, on stderr, only where a person watches."""

from __future__ import annotations

import asyncio
import sys
from types import TracebackType

import click

from dragoman.cleaning import one_line
from dragoman.host import Host

_EVERY_SECONDS = 0.1


class Waiting:
    """While servers connect: how many have settled, and which have not."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> Waiting:
        if sys.stderr.isatty():
            self._task = asyncio.create_task(self._show())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            click.echo("\r\x1b[2K", nl=False, err=True)

    async def _show(self) -> None:
        while True:
            views = self._host.servers.values()
            busy = [one_line(view.name, 30) for view in views if view.status == "pending" and view.phase]
            line = f"{len(views) - len(busy)} of {len(views)} checked"
            if busy:
                line += f", waiting for {', '.join(busy[:3])}{' …' if len(busy) > 3 else ''}"
            click.echo(f"\r\x1b[2K{click.style('●', fg='cyan')} {line}", nl=False, err=True)
            await asyncio.sleep(_EVERY_SECONDS)
