"""A host whose servers need no sign-in loads nothing of what a sign-in needs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, json, sys
from dragoman import Host
from tests.servers.web import streamable

async def main():
    async with streamable() as server:
        async with Host({"x": {"url": server.url}}) as host:
            view = (await host.ready())["x"]
            assert view.status == "connected", view.reason
            await host.call("mcp__x__echo", {"text": "?"})

asyncio.run(main())
print(json.dumps(sorted(sys.modules)))
"""
HEAVY = {"keyring", "joserfc", "cryptography", "segno"}
ROOT = Path(__file__).parents[2]
OF_SIGN_IN = {"sign_in", "callback", "grants", "http", "xaa", "dpop", "device", "lock", "assertions"}


@pytest.mark.requirement("AUT-1")
def test_a_remote_server_without_sign_in_loads_no_keychain_and_no_cryptography() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert loaded & HEAVY == set()
    assert {name for name in loaded if name.startswith("dragoman.auth.") and name[14:] in OF_SIGN_IN} == set()
