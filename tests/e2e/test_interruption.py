"""A command that is stopped half-way: says so, ends with 130, and leaves nothing running."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.command import DRAGOMAN, Terminal, config, entry, is_alive, wait_for_file
from tests.servers import stdio_server


def test_ctrl_c_during_a_call(tmp_path: Path) -> None:
    called = tmp_path / "called"
    servers = config(slow=entry("waits", called), stubborn=stdio_server("ignores_signals.py"))
    with Terminal("call", "mcp__slow__text", "--mcp-config", servers) as terminal:
        pid = int(wait_for_file(called))
        terminal.type(b"\x03")
        output = terminal.finish()
    assert terminal.process.returncode == 130
    assert "interrupted" in output
    assert "Traceback" not in output
    assert not is_alive(pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_sigterm_during_a_call(tmp_path: Path, number: signal.Signals) -> None:
    called = tmp_path / "called"
    command = [
        DRAGOMAN,
        "call",
        "mcp__slow__text",
        "--mcp-config",
        config(slow=entry("waits", called)),
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        pid = int(wait_for_file(called))
        process.send_signal(number)
        output, complaint = process.communicate(timeout=40)
    assert process.returncode == 130
    assert (output, complaint.strip()) == ("", "interrupted")
    assert not is_alive(pid)


def test_ctrl_c_while_a_server_is_still_starting(tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(3600)"
    servers = config(mute={"command": "python3", "args": ["-c", program]})
    with Terminal("tools", "--mcp-config", servers) as terminal:
        wait_for_file(started)
        terminal.type(b"\x03")
        output = terminal.finish()
    assert terminal.process.returncode == 130
    assert "Traceback" not in output
    assert not is_alive(int(started.read_text()))
