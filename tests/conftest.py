"""Applies to every test: its own home, a clean environment, and no process left running afterwards."""

import gc
import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

from tests.leftover_processes import leftovers, running_processes

pytest_plugins = ["tests.tiers"]

hypothesis_settings.register_profile("house", deadline=None, print_blob=True)
hypothesis_settings.register_profile("quick", deadline=None, print_blob=True, max_examples=20)

_numbers = itertools.count()
UNIT_TESTS = Path(__file__).parent / "unit"
FOREIGN_PREFIXES = ("MCP_", "DRAGOMAN_", "XDG_", "ANTHROPIC_", "OPENAI_", "CLAUDE_")
FOREIGN_NAMES = {"MAX_MCP_OUTPUT_TOKENS", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"}


def pytest_configure(config: pytest.Config) -> None:
    # Build machines start their runs with signals ignored (`nohup`, jobs in the background), and what a test
    # starts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for each in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)
    hypothesis_settings.load_profile("quick" if config.getoption("quick") else "house")


def pytest_collection(session: pytest.Session) -> None:
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Thousands of tests stay for as long as the run: no collection of garbage has to look at them."""
    gc.collect()
    gc.freeze()
    gc.enable()


def is_foreign(name: str) -> bool:
    """Would this variable let the machine's own settings into a test?"""
    return name.startswith(FOREIGN_PREFIXES) or name in FOREIGN_NAMES or name.lower().endswith("_proxy")


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh home directory; the test starts in its `work` folder."""
    # Not `mktemp`: it looks through all that were made before, and there are thousands.
    home = tmp_path_factory.getbasetemp() / f"home{next(_numbers)}"
    home.mkdir(mode=0o700)
    for name in filter(is_foreign, list(os.environ)):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("DRAGOMAN_CONFIG_DIR", str(home / ".dragoman"))
    monkeypatch.setenv("DRAGOMAN_MANAGED_DIR", str(home / "managed"))
    # Secrets of tests never go to the keychain of the machine.
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    work = home / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return home


@pytest.fixture(autouse=True)
def no_leftover_processes(request: pytest.FixtureRequest, home: Path) -> Iterator[None]:
    """Outside the unit tests: every process that the test started has ended at its end."""
    if request.path.is_relative_to(UNIT_TESTS):
        yield
        return
    before = running_processes()
    yield
    if left := leftovers(home, before, grace_seconds=2.0):
        pytest.fail("still running after the test:\n  " + "\n  ".join(left), pytrace=False)
