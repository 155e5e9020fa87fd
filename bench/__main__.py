"""`python -m bench`: measure, print a table, write JSON and a plot, and on request check what is promised.

`python -m bench search` is about something else: finding tools.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import Any

from bench.cases import BOUNDS, CASES, KEPT, LABELS, Case
from bench.plot import draw
from bench.report import Results, Sample, as_json, table, verdicts
from bench.worker import UNAVAILABLE

HERE = Path(__file__).parent
ROOT = HERE.parent
TIME_LIMIT = 120  # seconds for one measurement
QUIET = 0.15  # cores that other programs may use before a measurement is taken again
ATTEMPTS = 3
QUICK_REPEATS_SECONDS = 30  # what a quick run spends in all on measurements that were disturbed


class Unavailable(Exception):
    """This client is not installed here."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="fewer and shorter rounds, and only what is promised"
    )
    parser.add_argument("--case", action="append", metavar="NAME", choices=[case.name for case in CASES])
    parser.add_argument("--client", action="append", metavar="NAME", choices=list(LABELS))
    parser.add_argument("--rounds", type=int, help="how often each measurement is taken (7, quick: 3)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--svg", type=Path, metavar="FILE")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a promise is not kept")
    chosen = parser.parse_args()
    chosen.rounds = chosen.rounds or (3 if chosen.quick else 7)
    if not chosen.quick and not chosen.case and not chosen.client:  # a whole run is worth keeping
        chosen.json = chosen.json or HERE / "results" / "latest.json"
        chosen.svg = chosen.svg or HERE / "results" / "latest.svg"
    return chosen


def plan(chosen: argparse.Namespace, case: Case) -> list[str]:
    """The clients to measure. A quick run measures what bounds compare, unless cases or clients are named."""
    wanted = chosen.client or case.clients
    if chosen.quick and not chosen.client and not chosen.case:
        wanted = {
            name for bound in BOUNDS if bound.case == case.name for name in (bound.client, bound.reference)
        }
    return [name for name in case.clients if name in wanted]


def busy_seconds() -> float:
    """CPU seconds used on this machine, by anyone, including time stolen from a virtual machine."""
    try:
        user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    except OSError:
        return 0.0
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def children_seconds() -> float:
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(case: str, client: str, seconds: float, environment: dict[str, str]) -> tuple[Sample, float]:
    """One sample from a fresh process, and how many cores other programs used meanwhile."""
    command = [sys.executable, "-m", "bench.worker", case, client, str(seconds)]
    start, busy, ours = time.monotonic(), busy_seconds(), children_seconds()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True, **pipes)
    try:
        output, errors = process.communicate(timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, 0.0
    if process.returncode == UNAVAILABLE:
        raise Unavailable(errors.strip() or f"{client} is not installed")
    if process.returncode:
        show(f"failed: {case}, {LABELS[client]}: {errors.strip().splitlines()[-1]}\n")
        return None, 0.0
    foreign = busy_seconds() - busy - (children_seconds() - ours)
    return json.loads(output), max(0.0, foreign) / (time.monotonic() - start)


class Repeats:
    """Measures again while other programs disturb, a few times, and keeps the least disturbed sample."""

    def __init__(self, budget_seconds: float) -> None:
        self._left_seconds = budget_seconds

    def measure(self, *what: Any) -> tuple[Sample, float]:
        taken = [measure(*what)]
        while taken[-1][1] > QUIET and len(taken) < ATTEMPTS and self._left_seconds > 0:
            start = time.monotonic()
            taken.append(measure(*what))
            self._left_seconds -= time.monotonic() - start
        return min(taken, key=lambda one: one[1])


def show(words: str) -> None:
    """Progress: on a terminal one line that changes, elsewhere a line each. A line break keeps it."""
    if sys.stderr.isatty():
        print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)
    elif words:
        print(words.rstrip("\n"), file=sys.stderr, flush=True)


def run(chosen: argparse.Namespace, cases: list[Case]) -> tuple[Results, list[float]]:
    """All rounds. The order of the clients rotates from round to round, so that drift hits all alike."""
    results, foreign, missing = Results(), [], set()
    seconds = 0.3 if chosen.quick else 1.0
    repeats = Repeats(QUICK_REPEATS_SECONDS if chosen.quick else float("inf"))
    with tempfile.TemporaryDirectory() as state:
        path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path, "DRAGOMAN_CONFIG_DIR": state}
        for round_ in range(chosen.rounds):
            for case in cases:
                clients = plan(chosen, case) if round_ < case.most_rounds else []
                turn = round_ % max(1, len(clients))
                for client in clients[turn:] + clients[:turn]:
                    if (case.name, client) in missing:
                        continue
                    show(f"round {round_ + 1} of {chosen.rounds}: {case.name}, {LABELS[client]}")
                    try:
                        sample, others = repeats.measure(case.name, client, seconds, environment)
                    except Unavailable as error:
                        missing.add((case.name, client))
                        show(f"left out: {case.name}, {LABELS[client]}: {error}\n")
                        continue
                    results.add(case.name, client, sample)
                    foreign.append(others)
    show("")
    return results, foreign


def versions() -> dict[str, str]:
    found = {}
    for package in ("dragoman", "mcp", "fastmcp", "fastmcp-slim", "msgspec"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def main() -> None:
    if sys.argv[1:2] == ["search"]:
        from bench import search  # needs the tests' catalogue, and nothing else here does

        return search.main(sys.argv[2:])
    chosen = options()
    cases = [case for case in CASES if not chosen.case or case.name in chosen.case]
    found = versions()
    labels = LABELS | {
        "official": f"mcp {found.get('mcp', '')}",
        "fastmcp": f"FastMCP {found.get('fastmcp') or found.get('fastmcp-slim', '')}",
    }
    results, foreign = run(chosen, cases)
    python, system = platform.python_version(), f"{platform.system()} {platform.machine()}"
    rounds = f"{chosen.rounds}{' short' if chosen.quick else ''} rounds"
    about = f"Python {python}, {os.cpu_count()} cores, {system}; medians of {rounds}"
    disturbed = {"median": median(foreign or [0.0]), "max": max(foreign, default=0.0)}
    print(f"{about}\nother programs used {disturbed['median']:.2f} cores, {disturbed['max']:.2f} at most\n")
    for case in cases:
        for metric in case.metrics:
            if results.clients(case):
                print(table(results, case, metric, labels), end="\n\n")
    judged = verdicts(results)
    for bound, ratio, verdict in judged:
        print(f"{verdict:>12}  {bound}{'' if ratio is None else f': {ratio:.3g}'}")
    if chosen.json:
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        document = {"about": about, "when": when, "versions": found, "foreign_cores": disturbed}
        document["cases"] = as_json(results, cases)
        document["bounds"] = [{"bound": str(b), "ratio": ratio, "verdict": said} for b, ratio, said in judged]
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    if chosen.svg:
        chosen.svg.parent.mkdir(parents=True, exist_ok=True)
        chosen.svg.write_text(draw(results, labels, about))
    if chosen.check and any(verdict not in KEPT for _, _, verdict in judged):
        sys.exit(1)


if __name__ == "__main__":
    main()
