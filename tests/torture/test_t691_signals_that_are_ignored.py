"""T691: a program is started with SIGHUP ignored, as `nohup` does: it goes on when its terminal is closed."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import DRAGOMAN, config, entry, is_alive, wait_for_file

WAIT_SECONDS = 1.0


@pytest.mark.requirement("LIF-10")
def test_t691_only_the_signal_that_is_not_ignored_ends_a_command(tmp_path: Path) -> None:
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
