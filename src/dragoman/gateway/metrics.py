"""Metrics of the gateway, in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Final

from dragoman.servers.status import ServerStatus

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of durations, in seconds."""

CacheCounts = Mapping[str, Mapping[str, int]]


class Metrics:
    """The counters since the start."""

    def __init__(self) -> None:
        self._calls: Counter[tuple[str, str]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._buckets: Counter[tuple[str, int]] = Counter()
        """By server and place in `BUCKETS`: calls that took longer than the bound before, and not longer
        than this one."""
        self.lost: Counter[str] = Counter()
        """How often a server was lost."""
        self.refused: Counter[int] = Counter()
        """Requests that were refused before they were read, by status."""
        self.disconnected: Counter[str] = Counter()
        """Clients that the gateway has disconnected, by reason."""
        self.caller_hosts_refused = 0
        """Requests of callers whose own servers could not be opened, because too many are in use."""
        self.limited = 0
        """How many calls were refused because their caller made too many."""

    def count_call(self, server: str, outcome: str, seconds: float) -> None:
        self._calls[server, outcome] += 1
        self._seconds[server] += seconds
        self._buckets[server, bisect_left(BUCKETS, seconds)] += 1

    def text(
        self, servers: Mapping[str, ServerStatus], caches: Mapping[str, CacheCounts], **gauges: int
    ) -> str:
        """The current values of all metrics. `caches`: the results of cached reads, by level and server;
        `gauges`: further values by name."""
        return "\n".join([*self._lines(servers), *_cache_lines(caches), *_gauge_lines(gauges)]) + "\n"

    def _lines(self, servers: Mapping[str, ServerStatus]) -> Iterable[str]:
        yield "# TYPE dragoman_calls_total counter"
        for (server, outcome), count in sorted(self._calls.items()):
            yield f'dragoman_calls_total{{server="{_label(server)}",outcome="{_label(outcome)}"}} {count}'
        yield "# TYPE dragoman_call_duration_seconds histogram"
        for server in sorted(self._seconds):
            name, total = _label(server), sum(n for (each, _), n in self._calls.items() if each == server)
            counts = accumulate(self._buckets[server, place] for place in range(len(BUCKETS)))
            for bound, count in zip(BUCKETS, counts, strict=True):
                yield f'dragoman_call_duration_seconds_bucket{{server="{name}",le="{bound:g}"}} {count}'
            yield f'dragoman_call_duration_seconds_bucket{{server="{name}",le="+Inf"}} {total}'
            yield f'dragoman_call_duration_seconds_sum{{server="{name}"}} {self._seconds[server]:.6f}'
            yield f'dragoman_call_duration_seconds_count{{server="{name}"}} {total}'
        yield "# TYPE dragoman_server_connected gauge"
        for name, view in sorted(servers.items()):
            yield f'dragoman_server_connected{{server="{_label(name)}"}} {int(view.status == "connected")}'
        yield "# TYPE dragoman_server_lost_total counter"
        for server, count in sorted(self.lost.items()):
            yield f'dragoman_server_lost_total{{server="{_label(server)}"}} {count}'
        yield "# TYPE dragoman_requests_refused_total counter"
        for status, count in sorted(self.refused.items()):
            yield f'dragoman_requests_refused_total{{status="{status}"}} {count}'
        yield "# TYPE dragoman_clients_disconnected_total counter"
        for reason, count in sorted(self.disconnected.items()):
            yield f'dragoman_clients_disconnected_total{{reason="{_label(reason)}"}} {count}'
        yield "# TYPE dragoman_calls_limited_total counter"
        yield f"dragoman_calls_limited_total {self.limited}"
        yield "# TYPE dragoman_caller_hosts_refused_total counter"
        yield f"dragoman_caller_hosts_refused_total {self.caller_hosts_refused}"


def _cache_lines(caches: Mapping[str, CacheCounts]) -> Iterable[str]:
    yield "# TYPE dragoman_cache_total counter"
    for level, cache in caches.items():
        for server, counts in sorted(cache.items()):
            labels = f'server="{_label(server)}",level="{level}"'
            for result, count in sorted(counts.items()):
                yield f'dragoman_cache_total{{{labels},result="{result}"}} {count}'


def _gauge_lines(gauges: Mapping[str, int]) -> Iterable[str]:
    for name, value in gauges.items():
        yield f"# TYPE dragoman_{name} gauge"
        yield f"dragoman_{name} {value}"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
