"""From samples to medians, ratios, a table and a verdict."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.cases import BOUNDS, LABELS, Bound, Case, Metric

Sample = dict[str, float] | None  # what one worker measured; None: it did not finish


@dataclass
class Results:
    """All samples of a run: case → client → one entry per round (None where it did not finish)."""

    samples: dict[str, dict[str, list[Sample]]] = field(default_factory=dict)

    def add(self, case: str, client: str, sample: Sample) -> None:
        self.samples.setdefault(case, {}).setdefault(client, []).append(sample)

    def values(self, case: str, client: str, metric: str) -> list[float]:
        return [sample[metric] for sample in self.samples[case].get(client, []) if sample]

    def ratios(self, case: str, client: str, reference: str, metric: str) -> list[float]:
        """Client against reference, round by round, so that drift of the machine cancels out."""
        both = zip(self.samples[case].get(client, []), self.samples[case].get(reference, []))
        return [ours[metric] / theirs[metric] for ours, theirs in both if ours and theirs and theirs[metric]]

    def clients(self, case: Case) -> list[str]:
        return [client for client in case.clients if client in self.samples.get(case.name, {})]


def spread(values: list[float]) -> dict[str, float] | None:
    return {"median": median(values), "min": min(values), "max": max(values)} if values else None


def number(value: float) -> str:
    """Three significant digits or so, thousands apart."""
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(results: Results, case: Case, metric: Metric, labels: dict[str, str]) -> str:
    arrow = "more is better" if metric.more_is_better else "less is better"
    head = ["", metric.unit, "min – max", *(f"÷ {name.removeprefix('import ')}" for name in case.references)]
    rows = [head + [title for _, title in metric.extras]]
    for client in results.clients(case):
        found = spread(results.values(case.name, client, metric.key))
        if found is None:
            rows.append([labels[client], "did not finish"])
            continue
        row = [labels[client], number(found["median"]), f"{number(found['min'])} – {number(found['max'])}"]
        for reference in case.references:
            ratios = spread(results.ratios(case.name, client, reference, metric.key))
            row.append("–" if ratios is None else number(ratios["median"]))
        row += [number(median(results.values(case.name, client, key))) for key, _ in metric.extras]
        rows.append(row)
    widths = [max(len(row[n]) for row in rows if n < len(row)) for n in range(len(rows[0]))]
    lines = [f"{metric.title} · {arrow}"]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("   ".join(["  " + row[0].ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


def verdicts(results: Results) -> list[tuple[Bound, float | None, str]]:
    """Each promise about a case that was run, the ratio found, and what to say of it."""
    found = []
    for bound in BOUNDS:
        if bound.case in results.samples:
            ratios = results.ratios(bound.case, bound.client, bound.reference, bound.metric)
            ratio = median(ratios) if ratios else None
            found.append((bound, ratio, bound.verdict(ratio)))
    return found


def as_json(results: Results, cases: list[Case]) -> dict[str, Any]:
    """Medians, spreads, ratios and the samples themselves."""
    document: dict[str, Any] = {}
    for case in cases:
        rows = document[case.name] = {}
        for client in results.clients(case):
            row = rows[client] = {"label": LABELS[client], "samples": results.samples[case.name][client]}
            for metric in case.metrics:
                for key in (metric.key, *(key for key, _ in metric.extras)):
                    row[key] = spread(results.values(case.name, client, key))
                row[f"{metric.key} ratios"] = {
                    reference: spread(results.ratios(case.name, client, reference, metric.key))
                    for reference in case.references
                }
    return document
