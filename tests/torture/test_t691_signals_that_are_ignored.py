"""T691: a program that is started with SIGHUP ignored, as by `nohup`, continues when its terminal is
closed."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import DRAGOMAN, config, entry, is_alive, wait_for_file

WAIT_SECONDS = 1.0


@pytest.mark.requirement("LIF-10")
def test_t691_a_command_is_ended_only_by_signals_that_are_not_ignored(tmp_path: Path) -> None:
    called = tmp_path / "called"
    command = [
        "nohup",
        DRAGOMAN,
        "call",
        "mcp__slow__text",
        "--mcp-config",
        config(slow=entry("waits", called)),
    ]
    streams: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **streams) as process:
        pid = int(wait_for_file(called))
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(WAIT_SECONDS)
        process.send_signal(signal.SIGTERM)
        _, complaint = process.communicate(timeout=40)
    assert (process.returncode, complaint.strip()) == (130, "interrupted")
    assert not is_alive(pid)
