"""The plot: an SVG written by hand, horizontal bars, readable on light and on dark pages."""

from statistics import median
from xml.sax.saxutils import escape

from bench.report import Results, number

PANELS = (  # case, metric, title, unit, what is better
    ("throughput", "calls_per_s", "64 calls in flight", "calls/s", "longer is better"),
    ("latency", "median_us", "One call at a time", "µs", "shorter is better"),
    ("results", "ms_16", "A result of 16 MB", "ms", "shorter is better"),
    ("tools", "ms", "Connect and list 10 000 tools", "ms", "shorter is better"),
    ("memory", "base_mb", "Memory with one connection", "MB", "shorter is better"),
    ("import", "net_ms", "Import time", "ms", "shorter is better"),
)
NAMES = {
    "raw": "practical limit",
    "import dragoman": "dragoman",
    "import Host": "dragoman.Host",
    "import mcp": "mcp",
}
LEGEND = "Practical limit: a client written by hand for this, without timeouts, checks or recovery."
NOT_SHOWN = ("nothing", "version")
OURS = ("session", "host", "import dragoman", "import Host")
WIDTH, MARGIN, GAP = 880, 28, 40
PANEL = (WIDTH - 2 * MARGIN - GAP) / 2
NAME, VALUE = 144, 66  # room for the name before and the number after a bar
ROW, BAR, HEAD = 25, 15, 46

STYLE = """
  .card { fill: #ffffff; stroke: #d8dee4 } .axis { stroke: #d0d7de }
  text { font-family: -apple-system, "Segoe UI", Helvetica, sans-serif; font-size: 13px; fill: #1f2328 }
  .title { font-size: 19px; font-weight: 600 } .panel { font-size: 14px; font-weight: 600 }
  .faint { font-size: 12px; fill: #656d76 }
  .strong { font-weight: 600 } .other { fill: #a9b4c0 } .limit { fill: #d9dfe5 } .ours { fill: #1a7f64 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #30363d } .axis { stroke: #30363d }
    text { fill: #e6edf3 } .faint { fill: #8d96a0 }
    .other { fill: #57606a } .limit { fill: #343b44 } .ours { fill: #2eb88f }
  }
"""


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def bars(rows: list[tuple[str, str, float]], x: float, y: float) -> list[str]:
    room = PANEL - NAME - VALUE
    longest = max(value for _, _, value in rows)
    drawn = [f'<path class="axis" d="M{x + NAME} {y - 4}V{y + ROW * len(rows) - 6}"/>']
    for n, (client, label, value) in enumerate(rows):
        top = y + n * ROW
        kind = "ours" if client in OURS else "limit" if client == "raw" else "other"
        weight = "strong" if client in OURS else ""
        width = max(1.5, room * value / longest)
        drawn += [
            text(x, top + 12, label, weight),
            f'<rect class="{kind}" x="{x + NAME}" y="{top}" width="{width:.1f}" height="{BAR}" rx="2"/>',
            text(x + NAME + width + 7, top + 12, number(value), weight),
        ]
    return drawn


def draw(results: Results, labels: dict[str, str], about: str) -> str:
    names = labels | NAMES
    panels = []
    for case, metric, title, unit, better in PANELS:
        clients = [name for name in labels if name in results.samples.get(case, {}) and name not in NOT_SHOWN]
        found = [(name, results.values(case, name, metric)) for name in clients]
        rows = [(name, names[name], median(values)) for name, values in found if values]
        if rows:
            panels.append((title, better, unit, rows))
    body, y = [], 92.0
    for left in range(0, len(panels), 2):
        pair = panels[left : left + 2]
        for column, (title, better, unit, rows) in enumerate(pair):
            x = MARGIN + column * (PANEL + GAP)
            body.append(text(x, y, title, "panel"))
            body.append(text(x + PANEL, y, f"{unit}, {better}", "faint", "end"))
            body += bars(rows, x, y + 18)
        y += HEAD + ROW * max(len(rows) for *_, rows in pair) + 8
    height = y + 6
    head = [
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:.1f}" rx="8"/>',
        text(MARGIN, 38, "Calling MCP tools from Python, over stdio", "title"),
        text(MARGIN, 59, LEGEND, "faint"),
        text(MARGIN, height - 16, about, "faint"),
    ]
    size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">', f"<style>{STYLE}</style>"]
    lines += ["<title>Dragoman and other MCP clients compared</title>", *head, *body, "</svg>"]
    return "\n".join(lines) + "\n"
