"""Shows progress on one line of stderr, which is removed afterwards.

The line is shown only on a terminal that can move its cursor, and is never longer than the terminal is wide.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Final

from dragoman.cleaning import one_line
from dragoman.cli.terminal_output import is_animated, unescaped
from dragoman.wire.peer import Progress

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from dragoman.host import Host

BAR_COLUMNS: Final = 28
REFRESH_SECONDS: Final = 0.03
"""The shortest time between two paints: servers may report progress many thousand times a second."""
WAIT_SECONDS: Final = 0.1
"""The time between two checks of the servers that are being connected."""


class TerminalStatus:
    """One line that can be replaced. Rich is imported when it is shown for the first time."""

    _current: TerminalStatus | None = None
    """The instance that is on the screen."""

    def __init__(self) -> None:
        self._live: Live | None = None
        self._refreshed = 0.0
        self._can_be_shown = is_animated(sys.stderr)

    def show(self, line: RenderableType) -> None:
        now = time.monotonic()
        if not self._can_be_shown or now - self._refreshed < REFRESH_SECONDS:
            return
        self._refreshed = now
        if self._live is None:
            self._live = _live()
            self._live.start()
            TerminalStatus._current = self
        self._live.update(line, refresh=True)

    def hide(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
            TerminalStatus._current = None

    @staticmethod
    def hide_current() -> None:
        """Must be called before other text is written to the terminal."""
        if TerminalStatus._current is not None:
            TerminalStatus._current.hide()


def _live() -> Live:
    from rich.console import Console
    from rich.live import Live

    # Output is not redirected: questions are written without a line end, and would not be visible.
    return Live(
        console=Console(file=unescaped(sys.stderr), highlight=False),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def spinner(words: str) -> RenderableType:
    """The words after a character that changes every WAIT_SECONDS."""
    from rich.spinner import Spinner
    from rich.text import Text

    frames = Spinner("dots").frames
    frame = frames[int(time.monotonic() / WAIT_SECONDS) % len(frames)]
    return Text.assemble((frame, "cyan"), " ", words, no_wrap=True, overflow="ellipsis")


class ProgressLine:
    """Shows the progress of a call."""

    def __init__(self, indent: str = "") -> None:
        self._indent = indent
        self._line = TerminalStatus()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.hide()

    def update(self, progress: Progress) -> None:
        if is_animated(sys.stderr):
            self._line.show(bar(progress, indent=self._indent))


def bar(progress: Progress, *, indent: str = "") -> RenderableType:
    """A bar with the percentage and the message, or a count if the total is not known."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    line = Table.grid(padding=(0, 1), expand=True)
    line.add_column(no_wrap=True, width=len(indent) or None)
    message = Text(one_line(progress.message or "", 200))
    if progress.total and progress.total > 0:
        share = min(1.0, max(0.0, progress.progress / progress.total))
        line.add_column(width=BAR_COLUMNS, min_width=8)
        line.add_column(no_wrap=True, width=4, justify="right")
        line.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        shown = ProgressBar(1.0, share, width=None, finished_style="bar.complete")
        line.add_row(indent, shown, f"{share:.0%}", message)
    else:
        line.add_column(no_wrap=True)
        line.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        line.add_row(indent, f"{progress.progress:g}", message)
    return line


class ConnectProgress:
    """Shows how many servers are connected or have failed, and which are missing."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._task: asyncio.Task[None] | None = None
        self._settled: set[str] = set()
        """Servers that were connected or failed once, even if they are connecting again."""
        self._line = TerminalStatus()

    def __enter__(self) -> ConnectProgress:
        if is_animated(sys.stderr):
            self._task = asyncio.create_task(self._show())
        return self

    def __exit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            self._line.hide()

    async def _show(self) -> None:
        while True:
            await asyncio.sleep(WAIT_SECONDS)  # servers that connect quickly are not shown
            self._line.show(self._words())

    def _words(self) -> RenderableType:
        views = self._host.servers.values()
        # A server that waits for its turn is pending without a reason; one that needs approval has a reason.
        self._settled.update(
            view.name for view in views if view.status != "pending" or (view.reason and not view.phase)
        )
        busy = [one_line(view.name, 30) for view in views if view.name not in self._settled]
        words = f"{len(views) - len(busy)} of {len(views)} servers checked"
        if busy:
            words += f", waiting for {', '.join(busy)}"
        return spinner(words)
