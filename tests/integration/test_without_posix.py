"""Systems without the parts that only POSIX has: all but commands works there."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.servers.web import streamable

PROGRAM = Path(__file__).with_name("as_on_windows.py")
NO_COMMANDS = "commands cannot be started on this system yet"


async def as_on_windows() -> dict[str, Any]:
    async with streamable() as server:
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            str(PROGRAM),
            server.url,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        stdout, stderr = await child.communicate()
    assert child.returncode == 0, stderr.decode()
    return json.loads(stdout)


@pytest.mark.slow
async def test_everything_except_local_processes_works_without_posix(home: Path):
    found = await as_on_windows()
    assert found["imports"] == {}
    assert found["host"] == {
        "echo": "through",
        "saved": True,
        "long": True,
        "errors": {
            "program": ["start-failed", NO_COMMANDS],
            "helped": ["sign-in", f"its headersHelper could not be started: {NO_COMMANDS}"],
        },
    }
    code, out, err = found["help"]
    assert (code, err) == (0, "")
    assert out.startswith("Usage: dragoman [OPTIONS] [COMMAND]")
    assert found["add"][0] == 0, found["add"]
    assert found["list"][0] == 0, found["list"]
    code, out, err = found["tools"]
    assert code == 0, err
    assert "echo" in out
