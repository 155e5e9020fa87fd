"""The server scenarios of the official conformance suite, with the gateway in front of the official SDK's
everything-server. The rule is that of `test_conformance.py`: a check of its own succeeded, and none failed or
warned. The suite runs the scenarios of a revision one after the other in one process.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.access import LOCAL, KnownCaller
from tests.gateway import gateway_of
from tests.interop.conformance.test_conformance import run_suite
from tests.interop.remote import RECIPES, Remote

pytestmark = [
    pytest.mark.needs("conformance", "sdk-everything-server"),
    pytest.mark.requirement("GWY-1", "GWY-2"),
]
Part = Callable[..., dict[str, Any]]
COUNTS = {"2025-11-25": 33, "2026-07-28": 40}
"""How many scenarios a revision has: as many as the SDK's server passes by itself."""
PROTOCOLS = {"2025-11-25": "legacy", "2026-07-28": "auto"}
"""What the gateway speaks to the server: its tools for one era refuse the other."""
FOLDER = re.compile(r"server-(.+)-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9-]+Z")
"""Where the suite writes what it found in a scenario."""


async def anyone(authorization: object) -> KnownCaller:
    """The suite cannot send a token."""
    return LOCAL


async def scenarios_of(part: Part, revision: str) -> list[str]:
    code, said = await run_suite(part, "list", "--server")
    assert code == 0, said
    listed = re.findall(r"^ +- (\S+) \[(.*)\]$", said, re.MULTILINE)
    return [name for name, revisions in listed if revision in revisions.split(",")]


async def complaints(part: Part, folder: Path, url: str, revision: str) -> list[str]:
    """Why the gateway does not pass the scenarios of the revision; none if it does."""
    scenarios = await scenarios_of(part, revision)
    assert len(scenarios) == COUNTS[revision]
    words = ["--suite", "all", "--spec-version", revision, "--timeout", "30000", "-o", str(folder)]
    _, said = await run_suite(part, "server", "--url", url, *words)
    results = {FOLDER.sub(r"\1", file.parent.name): file for file in folder.rglob("checks.json")}
    found = [f"{scenario}: no checks: {said}" for scenario in set(scenarios) - set(results)]
    found += [f"{scenario}: it was not asked for" for scenario in set(results) - set(scenarios)]
    for scenario, file in results.items():
        checks = json.loads(file.read_text())
        bad = [check for check in checks if check["status"] in ("FAILURE", "WARNING")]
        found += [f"{scenario}: {check['id']}: {check.get('errorMessage')}" for check in bad]
        if not any(each["status"] == "SUCCESS" and each["id"] != "wire-schema-valid" for each in checks):
            found.append(f"{scenario}: no check of its own succeeded")
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("revision", COUNTS)
async def test_the_gateway_passes_every_scenario_that_the_server_behind_it_passes(
    part: Part, tmp_path: Path, revision: str
) -> None:
    async with Remote(RECIPES["sdk-http"], part) as server:
        entry = {**server.entry, "sampling": "ask", "roots": True, "protocol": PROTOCOLS[revision]}
        async with gateway_of({"fronted": entry}, identify=anyone, plain_names=True) as running:
            found = await complaints(part, tmp_path, running.url, revision)
    assert found == []


@pytest.mark.timeout(60)
async def test_a_gateway_without_servers_does_not_pass(part: Part, tmp_path: Path) -> None:
    async with gateway_of({}, identify=anyone) as running:
        found = await complaints(part, tmp_path, running.url, "2025-11-25")
    assert "tools-call-simple-text: no check of its own succeeded" in found
