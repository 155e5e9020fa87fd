"""The status line: model, context, tokens, cost, permission mode, servers. Pure, and the widget for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from rich.cells import cell_len
from textual.content import Content
from textual.widgets import Static

from dragoman.agent.events import Usage
from dragoman.cleaning import one_line
from dragoman.servers.status import ServerStatus

SEPARATOR: Final = " │ "
METER_CELLS: Final = 8
NEARLY_FULL: Final = 0.7
"""From this share of the context on, a summary is near (`agent/context.py:FULL_SHARE`)."""


class Status(Struct, frozen=True, kw_only=True):
    """What the status line shows."""

    model: str
    is_ready: bool = False
    """Whether the model can be asked."""
    context_tokens: int = 0
    context_limit: int = 0
    usage: Usage = Usage()
    mode: str = "default"
    servers: tuple[ServerStatus, ...] = ()

    @property
    def context_share(self) -> float:
        return self.context_tokens / self.context_limit if self.context_limit else 0.0


class Part(Struct, frozen=True):
    text: str
    style: str = ""
    rank: int = 0
    """Where there is no room for all, the highest are left out first."""


def status_text(status: Status, width: int) -> Content:
    """As many parts as fit into one line, in order."""
    parts = [part for part in _parts(status) if part.text]
    while len(parts) > 1 and _length(parts) > width:
        parts.remove(max(parts, key=lambda part: part.rank))
    pieces: list[str | tuple[str, str]] = []
    for part in parts:
        pieces += [(SEPARATOR, "dim")] if pieces else []
        pieces.append((part.text, part.style) if part.style else part.text)
    return Content.assemble(*pieces).truncate(width, ellipsis=True)


def _length(parts: Iterable[Part]) -> int:
    return sum(cell_len(part.text) + len(SEPARATOR) for part in parts) - len(SEPARATOR)


def _parts(status: Status) -> list[Part]:
    model = one_line(status.model, 40)
    share = status.context_share
    is_near = share >= NEARLY_FULL
    percent = f"context {share:.0%}{' nearly full' if is_near else ''}" if status.context_limit else ""
    usage = status.usage
    cost = "" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    return [
        Part(model if status.is_ready else f"{model} (loading)", "bold", 4),
        Part(meter(share) if status.context_limit else "", "", 7),
        Part(percent, "bold $text-warning" if is_near else "", 0),
        Part(f"{short(usage.input_tokens)} in {short(usage.output_tokens)} out", "", 3),
        Part(cost, "", 2),
        Part(f"mode {status.mode}", "", 1),
        *_server_parts(status.servers),
    ]


def _server_parts(servers: Iterable[ServerStatus]) -> list[Part]:
    counts = Counter(view.status for view in servers)
    if not counts:
        return [Part("no servers", "", 6)]
    connected = f"{counts['connected']}/{counts.total() - counts['disabled']} servers"
    wrong = [
        f"{count} {words}"
        for count, words in (
            (counts["failed"], "failed"),
            (counts["needs-auth"], "to sign in"),
            (counts["pending"], "pending"),
        )
        if count
    ]
    return [
        Part(", ".join([connected, *wrong]), "bold $text-error" if counts["failed"] else "", 1),
    ]


def meter(share: float) -> str:
    filled = min(METER_CELLS, round(share * METER_CELLS))
    return "█" * filled + "░" * (METER_CELLS - filled)


def short(count: int) -> str:
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 100_000 else f"{count / 1000:.0f}k"


class StatusLine(Static):
    """One line, always on the screen."""

    def __init__(self) -> None:
        super().__init__("", markup=False, id="status")
        self._status: Status | None = None

    def show(self, status: Status) -> None:
        if status != self._status:
            self._status = status
            self._paint()

    def on_resize(self) -> None:
        self._paint()

    def _paint(self) -> None:
        if self._status is not None:
            self.update(status_text(self._status, self.content_size.width or 80))
