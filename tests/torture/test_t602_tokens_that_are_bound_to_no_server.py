"""T602: with `oauth.sendResource: false` a server receives tokens that are not bound to it, so the setting
counts as a detour of credentials: under policy, in the approval question, and after an import."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.approval_questions import warnings_about_entry
from tests.e2e.forked import run
from tests.torture import projects
from tests.torture.projects import servers, write

pytestmark = pytest.mark.requirement("CFG-7")

URL = "https://wiki.company.example/mcp"
WITHOUT: dict[str, Any] = {"url": URL, "oauth": {"sendResource": False}}
WITH: dict[str, Any] = {"url": URL, "oauth": {"sendResource": True}}
TEXT = "the server is sent tokens that are not bound to it, and may use them elsewhere"


@pytest.mark.parametrize("scope", ["user", "project", "local", "dynamic"])
def test_t602_a_rule_for_a_url_does_not_admit_such_an_entry(home: Path, scope: str):
    projects.managed(home, {"allowedMcpServers": [{"serverUrl": "https://wiki.company.example/*"}]})
    refused = projects.seen().admit("box", WITHOUT, scope=scope)
    assert refused.eligibility == "refused"
    assert "the entry sets oauth.sendResource, which sends requests to another host" in (refused.reason or "")
    assert projects.seen().admit("box", WITH, scope=scope).eligibility == "ready"


def test_t602_the_approval_question_warns_of_unbound_tokens():
    assert list(warnings_about_entry("box", WITHOUT)) == [f"oauth.sendResource: {TEXT}"]
    assert list(warnings_about_entry("box", WITH)) == []


def test_t602_an_import_reports_unbound_tokens(home: Path):
    entry = {"type": "http", **WITHOUT}
    file = write(home / "work" / "theirs.json", servers(box=entry, plain={"type": "http", **WITH}))
    done = run("mcp", "import", "claude-code", str(file))
    assert done.returncode == 0, done.stderr
    told = [line.strip().removeprefix("! ") for line in done.stderr.splitlines()]
    assert told == [f"box: oauth.sendResource: it is imported: {TEXT}"]
