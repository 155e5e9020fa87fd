"""The soak as a picture: five small curves over the same time."""

from collections.abc import Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT, LEFT, TOP = 860, 96, 150, 46
CURVES = (
    ("descriptors", "file descriptors", "#2563eb"),
    ("tasks", "tasks", "#7c3aed"),
    ("threads", "threads", "#0d9488"),
    ("megabytes", "memory, MB", "#d97706"),
    ("connected", "servers connected", "#16a34a"),
)


def draw(samples: Sequence[Any], about: str) -> str:
    total = TOP + len(CURVES) * (HEIGHT + 14) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{total}" fill="#ffffff"/>',
        '<text x="20" y="22" font-size="15" font-weight="600" fill="#111">'
        "One host, five servers that keep dying</text>",
        f'<text x="20" y="38" fill="#555">{escape(about)}</text>',
    ]
    for number, (name, title, colour) in enumerate(CURVES):
        parts += _curve(samples, name, title, colour, TOP + 8 + number * (HEIGHT + 14))
    parts += _axis(samples, total - 24)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _curve(samples: Sequence[Any], name: str, title: str, colour: str, top: int) -> list[str]:
    values = [float(getattr(sample, name)) for sample in samples]
    most = max([*values, 1.0]) * 1.15
    points = " ".join(
        f"{_x(sample.second, samples):.1f},{top + HEIGHT - value / most * HEIGHT:.1f}"
        for sample, value in zip(samples, values)
    )
    base = top + HEIGHT
    return [
        f'<line x1="{LEFT}" y1="{base}" x2="{WIDTH - 20}" y2="{base}" stroke="#ddd"/>',
        f'<text x="20" y="{top + HEIGHT / 2}" fill="#111">{escape(title)}</text>',
        f'<text x="20" y="{top + HEIGHT / 2 + 16}" fill="#777">{min(values):g} – {max(values):.4g}</text>',
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.4"/>',
    ]


def _axis(samples: Sequence[Any], y: int) -> list[str]:
    last = samples[-1].second
    marks = [last * step / 5 for step in range(6)]
    place = 'text-anchor="end" fill="#777"'
    return [f'<text x="{_x(mark, samples):.0f}" y="{y}" {place}>{mark / 60:.2g} min</text>' for mark in marks]


def _x(second: float, samples: Sequence[Any]) -> float:
    return LEFT + second / samples[-1].second * (WIDTH - 20 - LEFT)
