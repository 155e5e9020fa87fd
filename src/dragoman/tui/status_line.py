"""The status line: model, context, tokens, cost, permission mode, servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct, structs
from rich.cells import cell_len
from textual.content import Content
from textual.widgets import Static

from dragoman.agent.events import Usage
from dragoman.cleaning import one_line
from dragoman.servers.status import ServerStatus

SEPARATORS: Final = (" │ ", "  ")
METER_CELLS: Final = 8
NEARLY_FULL: Final = 0.7
"""The share of the context from which the line warns of a compaction (`agent/context.py:FULL_SHARE`)."""


class Status(Struct, frozen=True, kw_only=True):
    """The values that the status line shows."""

    model: str
    is_ready: bool = False
    """Whether the session is open."""
    context_tokens: int = 0
    context_limit: int = 0
    usage: Usage = Usage()
    mode: str = "default"
    servers: tuple[ServerStatus, ...] = ()

    @property
    def context_share(self) -> float:
        return self.context_tokens / self.context_limit if self.context_limit else 0.0


class StatusPart(Struct, frozen=True):
    text: str
    style: str = ""
    rank: int = 0
    """If there is not enough room, parts with the highest rank are left out first."""
    short: str = ""
    """The text if there is little room."""


def status_text(status: Status, width: int) -> Content:
    """The parts that fit into one line, in order."""
    parts = [part for part in _parts(status) if part.text]
    for place in sorted(range(len(parts)), key=lambda place: parts[place].rank):
        if _length(parts, SEPARATORS[0]) > width and parts[place].short:
            parts[place] = structs.replace(parts[place], text=parts[place].short)
    separator = next((each for each in SEPARATORS if _length(parts, each) <= width), SEPARATORS[-1])
    while len(parts) > 1 and _length(parts, separator) > width:
        parts.remove(max(parts, key=lambda part: part.rank))
    shown = [Content.styled(part.text, part.style) for part in parts]
    return Content.styled(separator, "dim").join(shown).truncate(width, ellipsis=True)


def _length(parts: Collection[StatusPart], separator: str) -> int:
    return sum(cell_len(part.text) for part in parts) + len(separator) * (len(parts) - 1)


def _parts(status: Status) -> list[StatusPart]:
    model = one_line(status.model, 40)
    loading = "" if status.is_ready else " (loading)"
    share = status.context_share
    is_near = share >= NEARLY_FULL
    percent = f"context {share:.0%}{' nearly full' if is_near else ''}" if status.context_limit else ""
    usage = status.usage
    cost = "" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    return [
        StatusPart(model + loading, "bold", 3, model.partition(":")[2] + loading),
        StatusPart(
            f"{meter(share)} {percent}" if percent else "",
            "bold $text-warning" if is_near else "",
            0,
            percent,
        ),
        StatusPart(f"{short_count(usage.input_tokens)} in {short_count(usage.output_tokens)} out", "", 4),
        StatusPart(cost, "", 2),
        StatusPart(f"mode {status.mode}", "", 1, status.mode),
        *_server_parts(status.servers),
    ]


def _server_parts(servers: Iterable[ServerStatus]) -> list[StatusPart]:
    counts = Counter(view.status for view in servers)
    if not counts:
        return [StatusPart("no servers", "", 6)]
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
        StatusPart(", ".join([connected, *wrong]), "bold $text-error" if counts["failed"] else "", 1),
    ]


def meter(share: float) -> str:
    filled = min(METER_CELLS, round(share * METER_CELLS))
    return "█" * filled + "░" * (METER_CELLS - filled)


def short_count(count: int) -> str:
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 100_000 else f"{count / 1000:.0f}k"


class StatusLine(Static):
    """The widget of the status line."""

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
