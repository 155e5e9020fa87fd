"""The beginning of every question of a server on the screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from dragoman.cleaning import one_line, visible
from dragoman.interaction import RelatedCall


def heading(server: str, asks: str, message: str, calls: Sequence[RelatedCall]) -> Text:
    """Which server asks, in the course of which call, and its message in quotes."""
    text = Text.assemble((one_line(server, 80), "bold"), f" {asks}")
    names = [one_line(call.name, 80) for call in calls]
    if names:
        during = f"during {names[0]}" if len(names) == 1 else f"during one of {', '.join(names)}"
        text.append(f"\n{during}", style="dim")
    if message:
        text.append(f"\n“{visible(message, 4096)}”")
    return text
