"""The official conformance suite, the scenarios of a revision in one run, under a stricter rule than its own.

By itself the suite counts a scenario without checks as passed. Here a scenario passes if a check of its own
succeeded, none failed, none warned, the client was not stopped, and the client says that all went well. The
skills extension is left out by name.
"""

import asyncio
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CLIENT = Path(__file__).parents[1] / "conformance_client.py"
ONE_AT_A_TIME = Path(__file__).parents[1] / "one_at_a_time.py"
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
REVISIONS = ("2025-03-26", *LEGACY, *MODERN, *EXTENSION)
RUN = re.compile(r"-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9-]+Z$")
"""What the suite adds to the name of a scenario for its folder."""
NOTHING_SUCCEEDED = "no check of its own succeeded"

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


def names_in(revision: str) -> set[str]:
    return {name for name, revisions in {**SCENARIOS, **SIGN_IN}.items() if revision in revisions}


async def test_every_scenario_is_listed(part: Part) -> None:
    code, said = await run_suite(part, "list", "--client")
    assert code == 0, said
    listed = dict(re.findall(r"^ +- (\S+) \[(.*)\]$", said, re.MULTILINE))
    ours = {name: tuple(where.split(",")) for name, where in listed.items() if not name.startswith(LEFT_OUT)}
    assert ours == {**SCENARIOS, **SIGN_IN}
    assert {where for name, where in listed.items() if name.startswith("sep-2640-")} == {"extension"}


async def complaints(part: Part, folder: Path, command: str, revision: str) -> dict[str, list[str]]:
    """Why this client does not pass each of the scenarios of the revision; empty if it does."""
    homes, results = folder / "homes", folder / "results"
    homes.mkdir()
    turn = shlex.join([sys.executable, "-S", "-E", str(ONE_AT_A_TIME), str(homes)])
    words = (
        ["--suite", "extensions"] if revision in EXTENSION else ["--suite", "all", "--spec-version", revision]
    )
    words += ["--timeout", "120000", "-o", str(results)]  # most of it is spent waiting for the others
    _, said = await run_suite(part, "client", "--command", f"{turn} {command}", *words)
    # The name of a scenario may contain a slash.
    files = {
        RUN.sub("", str(file.parent.relative_to(results))): file for file in results.rglob("checks.json")
    }
    found = {name: list(complaints_in(file)) for name, file in files.items() if not name.startswith(LEFT_OUT)}
    if missing := names_in(revision) - set(found):
        found |= {name: [f"it was not run:\n{said}"] for name in missing}
    if ended := re.findall(r"Client exited with code .*|Client timed out .*", said):
        found["(some scenario)"] = [*ended, said]
    assert set(found) - {"(some scenario)"} == names_in(revision)
    return found


def complaints_in(file: Path) -> Iterator[str]:
    checks = json.loads(file.read_text())
    for check in checks:
        if check["status"] in ("FAILURE", "WARNING"):
            yield json.dumps(check, indent=1)
    if not any(each["status"] == "SUCCESS" and each["id"] != "wire-schema-valid" for each in checks):
        yield NOTHING_SUCCEEDED
    said = (file.parent / "stdout.txt").read_text().strip()
    if said != "done":
        yield f"it said {said!r}:\n{(file.parent / 'stderr.txt').read_text()}"


@pytest.mark.requirement("TRN-2", "AUT-1", "AUT-4", "AUT-8", "AUT-10")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_scenario_of_a_revision(part: Part, tmp_path: Path, revision: str) -> None:
    command = shlex.join([sys.executable, str(CLIENT)])
    found = await complaints(part, tmp_path, command, revision)
    wrong = [f"{name}: {why}" for name, reasons in found.items() for why in reasons]
    assert not wrong, "\n".join(wrong)


async def test_a_client_that_does_nothing_does_not_pass(part: Part, tmp_path: Path) -> None:
    found = await complaints(part, tmp_path, "/bin/true", "2026-07-28")
    assert all(any("it said ''" in why for why in reasons) for reasons in found.values())
    assert NOTHING_SUCCEEDED in found["http-standard-headers"]


async def test_a_client_that_fails_at_its_end_does_not_pass(part: Part, tmp_path: Path) -> None:
    code = f"import runpy; runpy.run_path({str(CLIENT)!r}, run_name='__main__'); raise SystemExit(3)"
    found = await complaints(part, tmp_path, shlex.join([sys.executable, "-c", code]), "2025-03-26")
    assert "Client exited with code 3" in found["(some scenario)"]
