"""T280: a local gateway is stopped while a command waits for it; output that a terminal cannot display."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.cli.local_gateway.endpoint import socket_path
from tests.e2e.command import DRAGOMAN, LIMIT_SECONDS, run

SERVER = """
import json, pathlib, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    match message["method"]:
        case "initialize":
            result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                      "serverInfo": {"name": "counts", "version": "1"}}
        case "tools/list":
            result = {"tools": [{"name": "count", "inputSchema": {"type": "object"}}]}
        case _:
            with pathlib.Path(sys.argv[1]).open("a") as file:
                file.write("x")
            result = {"content": [{"type": "text", "text": "counted \\u2603"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.fixture
def count(home: Path) -> Path:
    """The file with one character for each call."""
    (home / "server.py").write_text(SERVER)
    count, settings = home / "count", home / ".dragoman" / "settings.json"
    entry = {
        "command": sys.executable,
        "args": [str(home / "server.py"), str(count)],
        "protocol": "legacy",
    }
    settings.parent.mkdir()
    settings.write_text(json.dumps({"mcpServers": {"counts": entry}}))
    return count


@contextlib.contextmanager
def local_gateway() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [str(DRAGOMAN), "serve", "--local"], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    try:
        assert process.stderr.readline().startswith("1 server connected")
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.communicate(timeout=LIMIT_SECONDS)


def test_t280_a_call_that_the_command_makes_itself_is_not_made_by_the_gateway_too(count: Path):
    with local_gateway() as gateway:
        with socket.socket(socket.AF_UNIX) as command:
            command.connect(str(socket_path(os.getcwd())))
            lines = command.makefile("rb")
            lines.readline()
            gateway.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, gateway.pid, os.WSTOPPED | os.WNOWAIT)
            command.sendall(b'{"words": ["count"]}\n')
            lines.close()  # like a command after it has waited for a second
        gateway.send_signal(signal.SIGCONT)
        assert run("call", "count").returncode == 0
    assert count.read_text() == "x"


@pytest.mark.parametrize("is_local", [False, True])
def test_t280_characters_that_a_terminal_cannot_display_are_escaped(
    count: Path, is_local: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    with local_gateway() if is_local else contextlib.nullcontext():
        done = run("call", "count")
    assert (done.returncode, done.stdout, done.stderr) == (0, "counted \\u2603\n", "")
