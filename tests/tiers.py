"""The pytest plugin behind `scripts/test`.

It decides the tier of a test (by its folder), which tests cannot run here, and prints the closing table.
`scripts/setup-interop` installs third-party parts. A test that cannot run is counted and named in the table;
a test that skips by itself fails; with CI=true a tier that could not run fails the whole run.
"""

import json
import os
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePath
from typing import Any

import pytest

TIERS = (
    "unit",
    "integration",
    "e2e",
    "torture",
    "interop-python",
    "interop-node",
    "interop-conformance",
    "interop-oauth",
)
TALLIES = "dragoman-tallies"
"""Under which key a worker leaves what it knows, if several run side by side."""
QUICK_TIERS = ("unit", "integration", "e2e")


def tier_of(node_id: str) -> str:
    """tests/unit/test_x.py::test_y is 'unit', tests/interop/node/… is 'interop-node'."""
    return _tier_of_file(node_id.partition("::")[0])


@cache  # asked for several times for each of thousands of tests
def _tier_of_file(path: str) -> str:
    _, *folders = PurePath(path).parent.parts
    tier = "-".join(folders[:2] if folders[:1] == ["interop"] else folders[:1])
    if tier not in TIERS:
        raise pytest.UsageError(f"{path} is in no tier: tests live in {', '.join(TIERS)}")
    return tier


def read_parts(root: Path) -> dict[str, dict[str, Any]]:
    """The third-party parts: name → {"command": […]} or {"missing": why}."""
    manifest = root / ".cache" / "interop" / "manifest.json"
    return json.loads(manifest.read_text()) if manifest.exists() else {}


@dataclass
class Tally:
    passed: int = 0
    failed: int = 0
    seconds: float = 0.0
    left_out: int = 0
    missing: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Why tests could not run → how many."""


class TierPlugin:
    def __init__(self, config: pytest.Config) -> None:
        self.quick: bool = config.getoption("quick")
        self.parts = read_parts(config.rootpath)
        self.tallies = {tier: Tally() for tier in TIERS}
        self.everything_asked = not (
            self.quick
            or config.option.keyword
            or config.option.markexpr
            or config.args_source is not pytest.Config.ArgsSource.TESTPATHS
        )

    # --- before the tests: who can run? ---

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """--quick does not even read the tiers that it leaves out."""
        is_slow_tier = collection_path.parent == config.rootpath / "tests" and collection_path.name in (
            {tier.partition("-")[0] for tier in TIERS} - set(QUICK_TIERS)
        )
        return True if self.quick and is_slow_tier else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        staying: list[pytest.Item] = []
        leaving: list[pytest.Item] = []
        for item in items:
            (staying if self._can_run(item) else leaving).append(item)
        config.hook.pytest_deselected(items=leaving)
        items[:] = staying

    def _can_run(self, item: pytest.Item) -> bool:
        tier = tier_of(item.nodeid)
        tally = self.tallies[tier]
        if self.quick and item.get_closest_marker("slow"):
            tally.left_out += 1
            return False
        reasons = [why for name in needs_of(item) if (why := self._why_missing(name))]
        for reason in reasons:
            tally.missing[reason] += 1
        return not reasons

    def _why_missing(self, name: str) -> str | None:
        part = self.parts.get(name, {"missing": "scripts/setup-interop has not installed it"})
        return f"{name}: {part['missing']}" if "missing" in part else None

    # --- during the tests: no skipping, and counting ---

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        return self._refuse_skip((yield))

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self):
        return self._refuse_skip((yield))

    def _refuse_skip(self, report: Any) -> Any:
        if report.skipped and not hasattr(report, "wasxfail"):
            report.outcome = "failed"
            report.longrepr = f"A test does not skip by itself (it may name what it needs): {report.longrepr}"
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        tally = self.tallies[tier_of(report.nodeid)]
        tally.seconds += report.duration
        if report.failed:
            tally.failed += 1
        elif report.when == "call":
            tally.passed += 1

    # --- after the tests: the verdict on tiers, and the table ---

    def _trouble(self, tally: Tally) -> str | None:
        if tally.missing:
            return "; ".join(f"{why} ({count} tests)" for why, count in tally.missing.items())
        if self.everything_asked and not (tally.passed or tally.failed):
            return "it has no tests"
        return None

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """A worker is done: each has looked at all tests, so one of them says what could not run."""
        for tier, (missing, left_out) in getattr(node, "workeroutput", {}).get(TALLIES, {}).items():
            self.tallies[tier].missing.update(missing)
            self.tallies[tier].left_out = left_out

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        workeroutput = getattr(session.config, "workeroutput", None)
        if workeroutput is not None:
            workeroutput[TALLIES] = {
                tier: (dict(tally.missing), tally.left_out) for tier, tally in self.tallies.items()
            }
            return
        troubled = any(self._trouble(tally) for tally in self.tallies.values())
        if troubled and os.environ.get("CI") == "true" and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not terminalreporter.config.getoption("tiers"):
            return
        terminalreporter.section("tiers")
        for tier, tally in self.tallies.items():
            terminalreporter.write_line(f"{tier:<19} {self._describe(tier, tally)}")

    def _describe(self, tier: str, tally: Tally) -> str:
        if self.quick and tier not in QUICK_TIERS:
            return "left out by --quick"
        said = []
        if ran := tally.passed + tally.failed:
            said.append(
                f"{ran:>5} ran {tally.passed:>5} passed {tally.failed:>3} failed {tally.seconds:>7.1f} s"
            )
        if trouble := self._trouble(tally):
            said.append(f"could not run: {trouble}")
        if tally.left_out:
            said.append(f"{tally.left_out} left out by --quick")
        return "   ".join(said) or "not asked for"


def needs_of(item: pytest.Item) -> list[str]:
    return [name for marker in item.iter_markers("needs") for name in marker.args]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dragoman")
    group.addoption("--tiers", action="store_true", help="close with a table of the tiers")
    group.addoption(
        "--quick", action="store_true", help=f"only {', '.join(QUICK_TIERS)}, without `slow` tests"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(TierPlugin(config), "dragoman-tiers")


@pytest.fixture
def part(request: pytest.FixtureRequest):
    """`part("server-memory", "argument")` → the config entry that starts it. The test names it in `needs`."""
    parts = read_parts(request.config.rootpath)

    def entry(name: str, *arguments: str) -> dict[str, Any]:
        assert name in needs_of(request.node), f"mark the test with pytest.mark.needs({name!r})"
        command, *args = parts[name]["command"]
        return {"command": command, "args": [*args, *arguments]}

    return entry
