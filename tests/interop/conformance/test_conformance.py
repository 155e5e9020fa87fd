"""The official conformance suite, one scenario at a time, under a stricter rule than its own.

By itself the suite counts a scenario without checks as passed. Here a scenario passes if a check of its own
succeeded, none failed, none warned, the client was not stopped, and the client says that all went well. The
skills extension is left out by name.
"""

import asyncio
import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CLIENT = Path(__file__).parents[1] / "conformance_client.py"
LEGACY = ("2025-06-18", "2025-11-25")
MODERN = ("2026-07-28",)
SCENARIOS = {
    "initialize": LEGACY,
    "tools_call": LEGACY + MODERN,
    "elicitation-sep1034-client-defaults": ("2025-11-25",),
    "sse-retry": ("2025-11-25",),
    "request-metadata": MODERN,
    "sep-2322-client-request-state": MODERN,
    "http-standard-headers": MODERN,
    "http-custom-headers": MODERN,
    "http-invalid-tool-headers": MODERN,
    "json-schema-ref-no-deref": MODERN,
    "json-schema-2020-12-preservation": ("2025-11-25", *MODERN),
}
BOTH = ("2025-11-25", *MODERN)
EXTENSION = ("extension",)
SIGN_IN = {
    **dict.fromkeys(
        (
            "auth/metadata-default",
            "auth/metadata-var1",
            "auth/metadata-var2",
            "auth/metadata-var3",
            "auth/basic-cimd",
            "auth/scope-from-www-authenticate",
            "auth/scope-from-scopes-supported",
            "auth/scope-omitted-when-undefined",
            "auth/scope-step-up",
            "auth/scope-retry-limit",
            "auth/pre-registration",
        ),
        BOTH,
    ),
    **dict.fromkeys(
        (
            "auth/token-endpoint-auth-basic",
            "auth/token-endpoint-auth-post",
            "auth/token-endpoint-auth-none",
        ),
        ("2025-06-18", *BOTH),
    ),
    **dict.fromkeys(
        ("auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"),
        ("2025-03-26",),
    ),
    **dict.fromkeys(
        (
            "auth/resource-mismatch",
            "auth/offline-access-scope",
            "auth/offline-access-not-supported",
            "auth/authorization-server-migration",
            "auth/iss-supported",
            "auth/iss-not-advertised",
            "auth/iss-supported-missing",
            "auth/iss-wrong-issuer",
            "auth/iss-unexpected",
            "auth/iss-normalized",
            "auth/metadata-issuer-mismatch",
        ),
        MODERN,
    ),
    **dict.fromkeys(
        (
            "auth/client-credentials-jwt",
            "auth/client-credentials-basic",
            "auth/enterprise-managed-authorization",
            "auth/dpop",
            "auth/dpop-nonce",
            "auth/wif-jwt-bearer",
        ),
        EXTENSION,
    ),
}
LEFT_OUT = ("sep-2640-",)
"""The skills extension."""

pytestmark = pytest.mark.needs("conformance")
Part = Callable[..., dict[str, Any]]


async def run_suite(part: Part, *words: str) -> tuple[int | None, str]:
    entry = part("conformance", *words)
    running = await asyncio.create_subprocess_exec(
        entry["command"],
        *entry["args"],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await running.communicate()
    return running.returncode, said.decode()


async def test_no_scenario_is_forgotten(part: Part) -> None:
    code, said = await run_suite(part, "list", "--client")
    assert code == 0, said
    listed = dict(re.findall(r"^ +- (\S+) \[(.*)\]$", said, re.MULTILINE))
    ours = {name: tuple(where.split(",")) for name, where in listed.items() if not name.startswith(LEFT_OUT)}
    assert ours == {**SCENARIOS, **SIGN_IN}
    assert {where for name, where in listed.items() if name.startswith("sep-2640-")} == {"extension"}


async def complaints(part: Part, folder: Path, command: str, scenario: str, revision: str) -> list[str]:
    """Why this client does not pass this scenario; none if it does."""
    words = ["--scenario", scenario, "--timeout", "30000", "-o", str(folder)]
    if revision not in EXTENSION:
        words += ["--spec-version", revision]
    code, said = await run_suite(part, "client", "--command", command, *words)
    (file,) = folder.rglob("checks.json")  # the name of a scenario may contain a slash
    results = file.parent
    checks = json.loads(file.read_text())
    found = [json.dumps(check, indent=1) for check in checks if check["status"] in ("FAILURE", "WARNING")]
    if not any(each["status"] == "SUCCESS" and each["id"] != "wire-schema-valid" for each in checks):
        found.append("no check of its own succeeded")
    if "TIMED OUT" in said:
        found.append("it was stopped")
    if (code, (results / "stdout.txt").read_text().strip()) != (0, "done"):
        found.append(f"it ended with {code}:\n{said}")
    return found


@pytest.mark.requirement("AUT-1", "AUT-4", "AUT-8", "AUT-10")
@pytest.mark.parametrize(
    ("scenario", "revision"), [(name, each) for name, revisions in SIGN_IN.items() for each in revisions]
)
async def test_sign_in_scenario(part: Part, tmp_path: Path, scenario: str, revision: str) -> None:
    command = shlex.join([sys.executable, str(CLIENT)])
    found = await complaints(part, tmp_path, command, scenario, revision)
    assert not found, "\n".join(found)


@pytest.mark.requirement("TRN-2")
@pytest.mark.parametrize(
    ("scenario", "revision"), [(name, each) for name, revisions in SCENARIOS.items() for each in revisions]
)
async def test_scenario(part: Part, tmp_path: Path, scenario: str, revision: str) -> None:
    command = shlex.join([sys.executable, str(CLIENT)])
    found = await complaints(part, tmp_path, command, scenario, revision)
    assert not found, "\n".join(found)


async def test_a_client_that_does_nothing_does_not_pass(part: Part, tmp_path: Path) -> None:
    found = await complaints(part, tmp_path, "true", "http-standard-headers", "2026-07-28")
    assert "no check of its own succeeded" in found
