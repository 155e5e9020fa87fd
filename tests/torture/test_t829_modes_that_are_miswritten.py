"""T829: a permission mode that restricts calls restricts them also if a file writes it in other letter case.
It had no effect, and the administrator's then gave way to the person's, which may permit every call."""

import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from tests.torture import projects

pytestmark = pytest.mark.requirement("PRM-2")
ENTRY = {"command": sys.executable, "args": ["-m", "dragoman.demo"]}
PERSONS: dict[str, Any] = {
    **projects.servers(demo=ENTRY),
    "permissions": {"defaultMode": "bypassPermissions"},
}


async def mode_of(host: Host) -> str:
    async with host:
        return host.permission_mode


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ("Plan", "plan"),
        ("plan ", "plan"),
        ("dontask", "dontAsk"),
        ("dont-ask", "dontAsk"),
        ("DEFAULT", "default"),
        ("ask", "default"),
        ("", "default"),
        (5, "default"),
        (["plan"], "default"),
        ("BypassPermissions", "default"),
        (None, "bypassPermissions"),
        ("auto", "auto"),
    ],
)
async def test_t829_the_administrators_mode(home: Path, written: Any, mode: str):
    projects.user(home, PERSONS)
    projects.managed(home, {"permissions": {"defaultMode": written}})
    assert await mode_of(Host.configured()) == mode


@pytest.mark.parametrize(("written", "mode"), [("Plan", "plan"), ("dontask", "dontAsk"), ("Auto", "default")])
async def test_t829_the_persons_mode(home: Path, written: str, mode: str):
    projects.user(home, {**PERSONS, "permissions": {"defaultMode": written, "allow": ["mcp__demo"]}})
    assert await mode_of(Host.configured()) == mode


@pytest.mark.parametrize(
    ("written", "mode"), [("Plan", "plan"), ("dontask", "dontAsk"), ("nothing", "bypassPermissions")]
)
async def test_t829_a_projects_mode(home: Path, written: str, mode: str):
    projects.user(home, PERSONS)
    projects.write(home / "work/.dragoman/settings.local.json", {"permissions": {"defaultMode": written}})
    assert await mode_of(Host.configured()) == mode


async def test_t829_it_applies_to_servers_in_code_too(home: Path):
    projects.user(home, {"permissions": {"defaultMode": "Plan"}})
    assert await mode_of(Host({"demo": ENTRY})) == "plan"
