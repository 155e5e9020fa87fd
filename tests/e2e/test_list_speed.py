"""Listing two hundred servers takes a fraction of the time it takes to import the protocol's SDK."""

import json
import resource
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import DRAGOMAN, config
from tests.integration.desk import Desk

ROUNDS = 3
LARGEST_SHARE = 0.30
"""`scripts/bench` wants 0.25; a few rounds on a machine with other work need room."""
EACH = 40
"""Servers in each of five scopes."""


def servers(scope: str) -> dict[str, Any]:
    """Every third remote, with variables, headers and arguments as people have them."""
    return {f"{scope}-{number}": _entry(scope, number) for number in range(EACH)}


def _entry(scope: str, number: int) -> dict[str, Any]:
    if number % 3 == 0:
        headers = {"Authorization": "Bearer ${TOKEN:-none}"}
        return {"type": "http", "url": f"https://{scope}{number}.example.com/mcp", "headers": headers}
    return {"command": "npx", "args": ["-y", f"@{scope}/server-{number}"], "env": {"KEY": "${KEY:-none}"}}


def fill(desk: Desk) -> tuple[str, ...]:
    """Files of four scopes; the words that add the fifth."""
    desk.write(desk.plugin_file("tools"), servers("plugin"))
    desk.user(servers("user"), enableAllProjectMcpServers=True)
    desk.in_project(servers("project"))
    desk.local(servers("local"))
    desk.managed(deniedMcpServers=[{"serverUrl": "https://evil.example/*"}])
    return ("--mcp-config", config(**servers("given")))


def seconds_of(*command: str | Path) -> float:
    """Processor time: what else runs on the machine is no part of it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=40, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.slow
@pytest.mark.requirement("CLI-1")
def test_a_list_of_two_hundred_servers_is_fast(home: Path) -> None:
    listing = (DRAGOMAN, "mcp", "list", "--no-health", *fill(Desk(home)))
    shown = subprocess.run([*listing, "--json"], capture_output=True, timeout=40, check=True).stdout
    listed = json.loads(shown)["servers"]
    assert len(listed) == 5 * EACH
    assert {server["scope"] for server in listed} == {"plugin", "user", "project", "local", "dynamic"}
    importing = (sys.executable, "-c", "import mcp")
    seconds_of(*importing)  # once unmeasured, so that compiling is no part of it
    pairs = [(seconds_of(*listing), seconds_of(*importing)) for _ in range(ROUNDS)]
    ours, theirs = (statistics.median(times) for times in zip(*pairs))
    share = ours / theirs
    print(f"list of 200 servers {ours * 1000:.0f} ms, import mcp {theirs * 1000:.0f} ms, ratio {share:.3f}")
    assert share < LARGEST_SHARE
