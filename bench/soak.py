"""`python -m bench.soak [--minutes 10]`: five servers on four transports keep dying, one host stays.

Every server is called all the time, and killed and started again every few seconds. Once a second it is
written down how many file descriptors, tasks, threads and bytes the host uses. They must be as many at the
end as at the beginning: the exit status is 1 if not. Writes results/soak.json and results/soak.svg.
"""

import argparse
import asyncio
import gc
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from bench.soak_plot import draw
from dragoman import DragomanError, Host

HERE = Path(__file__).parent
MINIMAL = [sys.executable, "-S", "-E", str(HERE / "servers" / "minimal.py")]
REMOTE = {"http": "http", "old-http": "legacy", "sse": "sse", "ws": "ws"}
PATHS = {"http": "mcp", "legacy": "mcp", "sse": "sse", "ws": "ws"}
SETTLE_SECONDS = 30
"""What comes before is warming up: imports, pools, the allocator."""


@dataclass
class Sample:
    second: float
    descriptors: int
    tasks: int
    threads: int
    megabytes: float
    connected: int
    calls: int
    failures: int


class Remote:
    """A server in a process of its own, always on the same port."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def entry(self) -> dict[str, str]:
        kind = self.kind if self.kind in ("ws", "sse") else "http"
        scheme = "ws" if kind == "ws" else "http"
        return {"type": kind, "url": f"{scheme}://127.0.0.1:{self.port}/{PATHS[self.kind]}"}

    def start(self) -> None:
        command = [sys.executable, "-m", "bench.servers.flapping", self.kind, str(self.port)]
        self.process = subprocess.Popen(command, cwd=HERE.parent, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class Soak:
    def __init__(self, minutes: float, chance: random.Random) -> None:
        self.seconds = minutes * 60
        self.chance = chance
        self.remotes = {name: Remote(kind) for name, kind in REMOTE.items()}
        self.outcomes: Counter[str] = Counter()
        self.samples: list[Sample] = []
        self.kills = 0

    async def run(self) -> None:
        for remote in self.remotes.values():
            remote.start()
        entries = {name: remote.entry for name, remote in self.remotes.items()}
        entries["stdio"] = {"command": MINIMAL[0], "args": MINIMAL[1:]}
        await asyncio.sleep(2)
        try:
            async with Host(entries, permission_mode="bypassPermissions") as host:
                await host.ready(timeout=30)
                await self._live(host)
        finally:
            for remote in self.remotes.values():
                remote.kill()

    async def _live(self, host: Host) -> None:
        works = [self._call(host, name) for name in host.servers]
        works += [self._kill(host, name) for name in host.servers]
        tasks = [asyncio.create_task(work) for work in works]
        started = time.monotonic()
        try:
            while (passed := time.monotonic() - started) < self.seconds:
                await asyncio.sleep(1)
                self.samples.append(self._look(host, passed))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _call(self, host: Host, name: str) -> None:
        while True:
            try:
                await host.call(f"mcp__{name}__echo", {"text": "hello"}, timeout_seconds=30)
                self.outcomes["ok"] += 1
            except DragomanError as error:
                self.outcomes[error.code] += 1
                if error.code == "not-connected":
                    await host.reconnect(name)
            await asyncio.sleep(0.05)

    async def _kill(self, host: Host, name: str) -> None:
        while True:
            await asyncio.sleep(self.chance.uniform(4, 10))
            self.kills += 1
            if name == "stdio":
                if pid := host.servers[name].pid:
                    os.kill(pid, signal.SIGKILL)
                continue
            await asyncio.to_thread(self.remotes[name].kill)
            await asyncio.sleep(self.chance.uniform(0, 1.5))
            self.remotes[name].start()

    def _look(self, host: Host, passed: float) -> Sample:
        gc.collect()
        with open("/proc/self/statm") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        return Sample(
            second=round(passed, 1),
            descriptors=len(os.listdir("/proc/self/fd")),
            tasks=len(asyncio.all_tasks()),
            threads=threading.active_count(),
            megabytes=resident / 1e6,
            connected=sum(view.status == "connected" for view in host.servers.values()),
            calls=self.outcomes["ok"],
            failures=sum(self.outcomes.values()) - self.outcomes["ok"],
        )


SLACK = {"descriptors": 6.0, "tasks": 6.0, "threads": 1.0, "megabytes": 4.0}
"""How much more the last third may use than the first, by median."""


def judge(samples: list[Sample]) -> dict[str, dict[str, float | bool]]:
    settled = [sample for sample in samples if sample.second >= min(SETTLE_SECONDS, samples[-1].second / 4)]
    third = max(1, len(settled) // 3)
    found: dict[str, dict[str, float | bool]] = {}
    for name, slack in SLACK.items():
        first = median(getattr(sample, name) for sample in settled[:third])
        last = median(getattr(sample, name) for sample in settled[-third:])
        found[name] = {"first": first, "last": last, "flat": last - first <= slack}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    chosen = parser.parse_args()
    soak = Soak(chosen.minutes, random.Random(chosen.seed))
    with tempfile.TemporaryDirectory() as state:
        os.environ["DRAGOMAN_CONFIG_DIR"] = state
        asyncio.run(soak.run())
    verdict = judge(soak.samples)
    lost = sum(soak.outcomes.values()) - soak.outcomes["ok"]
    about = (
        f"{chosen.minutes:g} minutes, {soak.kills} kills, {soak.outcomes['ok']} calls answered, {lost} lost"
    )
    print(about)
    for name, row in verdict.items():
        print(f"{name:12} {row['first']:8.1f} → {row['last']:8.1f}  {'flat' if row['flat'] else 'GROWS'}")
    chosen.out.mkdir(parents=True, exist_ok=True)
    document = {"about": about, "verdict": verdict, "samples": [asdict(sample) for sample in soak.samples]}
    (chosen.out / "soak.json").write_text(json.dumps(document) + "\n")
    (chosen.out / "soak.svg").write_text(draw(soak.samples, about))
    sys.exit(0 if all(row["flat"] for row in verdict.values()) else 1)


if __name__ == "__main__":
    main()
