"""The demo's picture in a terminal: two pixels to a character."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.demo.picture import Pixel, pixels


def draw(size: int) -> Iterator[str]:
    rows = pixels(size)
    for upper, lower in zip(rows[::2], rows[1::2]):
        yield "".join(_cell(above, below) for above, below in zip(upper, lower)) + "\x1b[0m"


def _cell(above: Pixel, below: Pixel) -> str:
    r, g, b = above
    s, t, u = below
    return f"\x1b[38;2;{r};{g};{b}m\x1b[48;2;{s};{t};{u}m▀"
