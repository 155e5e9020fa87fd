"""T251: the program is started with closed standard streams, as some supervisors do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.requirement("CLI-1")


def run(closed: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`closed` is in shell notation."""
    command = ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "dragoman", *arguments]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, env=dict(os.environ)
    )


@pytest.mark.parametrize(
    ("closed", "printed"),
    [("<&-", "counted to 1\n"), (">&-", ""), ("2>&-", "counted to 1\n"), ("<&- >&- 2>&-", "")],
)
def test_t251_a_call_succeeds_without_standard_streams(home: Path, closed: str, printed: str):
    ended = run(closed, "call", "mcp__demo__count", "to=1", "seconds=0.1", "--mcp-config", "demo", "--yes")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, printed, "")


def test_t251_an_error_is_not_a_traceback(home: Path):
    ended = run("<&- >&-", "mcp", "get", "nothing")
    assert ended.returncode == 5
    assert ended.stderr.startswith("error: there is no server 'nothing'")
