"""What is measured, and what is promised: tables only."""

from dataclasses import dataclass

LABELS = {
    "bare": "no client (bare)",
    "raw": "raw asyncio + msgspec",
    "post": "bare aiohttp POST",
    "session": "Dragoman session",
    "host": "Dragoman Host",
    "guarded": "Dragoman Host, guarded",
    "official": "mcp (official)",
    "fastmcp": "FastMCP",
    "nothing": "python -c pass",
    "import dragoman": "import dragoman",
    "import Host": "from dragoman import Host",
    "import mcp": "import mcp",
    "version": "dragoman --version",
    "list": "dragoman mcp list --no-health, 200 servers",
    "as it is": "Dragoman as it is",
    "without sign-in": "without the modules of sign-in",
}
FIVE = ("raw", "session", "host", "official", "fastmcp")
HTTP = ("post", "session", "host", "official", "fastmcp")
HTTP_EXTRAS = (("cpu_us", "CPU µs/call"), ("median_us", "one at a time, µs"))


@dataclass(frozen=True)
class Metric:
    key: str
    title: str
    unit: str
    more_is_better: bool = False
    extras: tuple[tuple[str, str], ...] = ()  # (key, column title): shown beside it, without ratios


@dataclass(frozen=True)
class Case:
    name: str
    metrics: tuple[Metric, ...]
    clients: tuple[str, ...] = FIVE
    references: tuple[str, ...] = ("raw", "official")
    most_rounds: int = 99


CASES = (
    Case("latency", (Metric("median_us", "one call at a time", "µs/call", extras=(("p99_us", "p99 µs"),)),)),
    Case(
        "throughput",
        (Metric("calls_per_s", "64 calls in flight", "calls/s", True, (("cpu_us", "CPU µs/call"),)),),
    ),
    Case(
        "pipeline",
        (
            Metric(
                "calls_per_s",
                "64 calls in flight, with rules, hooks and audit",
                "calls/s",
                True,
                (("cpu_us", "CPU µs/call"),),
            ),
        ),
        clients=("host", "guarded", "official"),
        references=("host", "official"),
    ),
    Case(
        "sdk-server",
        (
            Metric(
                "cpu_us",
                "64 calls in flight, server on the official SDK: CPU of the client",
                "µs/call",
                extras=(("calls_per_s", "calls/s"), ("median_us", "one at a time, µs")),
            ),
        ),
    ),
    Case(
        "http",
        (Metric("calls_per_s", "64 calls in flight over HTTP", "calls/s", True, HTTP_EXTRAS),),
        clients=HTTP,
        references=("post", "official"),
    ),
    Case(
        "http-sse",
        (Metric("calls_per_s", "the same, replies as streams of events", "calls/s", True, HTTP_EXTRAS),),
        clients=HTTP,
        references=("post", "official"),
    ),
    Case(
        "http-sdk",
        (Metric("calls_per_s", "over HTTP, server on the official SDK", "calls/s", True, HTTP_EXTRAS),),
        clients=HTTP,
        references=("post", "official"),
    ),
    Case(
        "http-sdk-sse",
        (Metric("calls_per_s", "the same, replies as streams of events", "calls/s", True, HTTP_EXTRAS),),
        clients=HTTP,
        references=("post", "official"),
    ),
    Case(
        "connect",
        (
            Metric(
                "ms_50",
                "start and connect 50 servers",
                "ms",
                extras=(("ms_10", "10, ms"), ("ms_1", "1, ms"), ("cpu_ms", "CPU for 50, ms")),
            ),
        ),
        clients=("bare", *FIVE),
        references=("bare", "official"),
    ),
    Case(
        "memory",
        (
            Metric("base_mb", "resident memory with one connection", "MB"),
            Metric("per_connection_kb", "memory per further idle connection", "kB"),
        ),
        clients=("raw", "session", "host", "official"),
    ),
    Case("tools", (Metric("ms", "connect and list 10 000 tools", "ms"),)),
    Case(
        "catalogue",
        (Metric("ms", "from the reply with 10 000 tools to usable ones", "ms"),),
        clients=("host", "official"),
        references=("official",),
    ),
    Case(
        "results",
        (Metric("ms_16", "a result of 16 MB", "ms", extras=(("ms_1", "1 MB, ms"),)),),
        clients=("raw", "session", "host", "official"),
    ),
    Case(
        "results-64",
        (Metric("ms_64", "a result of 64 MB", "ms"),),
        clients=("raw", "session", "host", "official"),
        most_rounds=2,
    ),
    Case(
        "import",
        (Metric("net_ms", "start-up, beyond the bare interpreter", "ms", extras=(("ms", "in all, ms"),)),),
        clients=("nothing", "import dragoman", "import Host", "import mcp", "version", "list"),
        references=("import mcp",),
    ),
    Case(
        "sign-in",
        (
            Metric("import_ms", "`from dragoman import Host`, in all", "ms"),
            Metric("memory_mb", "resident memory with a connected HTTP server that needs no sign-in", "MB"),
            Metric("list_ms", "`mcp list --no-health`, 200 servers, in all", "ms"),
        ),
        clients=("as it is", "without sign-in"),
        references=("without sign-in",),
    ),
)


KEPT = ("ok", "within slack")


@dataclass(frozen=True)
class Bound:
    """`client` must reach (or stay below) `limit` times `reference`; `slack` is what noise may take."""

    case: str
    metric: str
    client: str
    reference: str
    limit: float
    at_least: bool = False
    slack: float = 0.05

    def verdict(self, ratio: float | None) -> str:
        if ratio is None:
            return "NOT MEASURED"
        excess = self.limit / ratio if self.at_least else ratio / self.limit
        return "ok" if excess <= 1 else "within slack" if excess <= 1 + self.slack else "VIOLATED"

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        promise = f"{LABELS[self.client]} {sign} {self.limit:g} × {LABELS[self.reference]}"
        return f"{self.case}, {self.metric}: {promise}"


BOUNDS = (
    Bound("throughput", "calls_per_s", "host", "raw", 0.50, at_least=True, slack=0.19),
    Bound("throughput", "calls_per_s", "host", "official", 12, at_least=True, slack=0.15),
    Bound("pipeline", "calls_per_s", "guarded", "official", 6, at_least=True),
    Bound("latency", "median_us", "host", "raw", 1.4, slack=0.10),
    Bound("http", "calls_per_s", "host", "post", 0.85, at_least=True),
    Bound("http", "calls_per_s", "host", "official", 6, at_least=True),
    Bound("http-sdk", "calls_per_s", "host", "post", 0.90, at_least=True),
    Bound("catalogue", "ms", "host", "official", 0.2, slack=0.0),
    Bound("connect", "ms_50", "host", "bare", 1.2, slack=0.10),
    Bound("memory", "base_mb", "host", "official", 0.5),
    Bound("memory", "per_connection_kb", "host", "official", 1.0),
    Bound("import", "net_ms", "import dragoman", "import mcp", 0.1, slack=0.10),
    Bound("import", "ms", "list", "import mcp", 0.25, slack=0.10),
    Bound("sign-in", "import_ms", "as it is", "without sign-in", 1.0, slack=0.10),
    Bound("sign-in", "memory_mb", "as it is", "without sign-in", 1.0, slack=0.03),
    Bound("sign-in", "list_ms", "as it is", "without sign-in", 1.0, slack=0.10),
    Bound("results", "ms_16", "host", "raw", 2.0, slack=0.15),
)
