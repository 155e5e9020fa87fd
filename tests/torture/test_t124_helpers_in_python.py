"""T124: a headers helper in Python imports no module from the project's folder; the same applies to
servers."""

import sys
from pathlib import Path

import pytest

from dragoman import Host
from dragoman.config.model import ServerConfig
from dragoman.config.policy import Policy
from dragoman.config.policy_subjects import as_started
from tests.torture import projects
from tests.torture.projects import approve, servers, write

pytestmark = pytest.mark.requirement("CFG-7")

URL = "http://127.0.0.1:1/mcp"


async def test_t124_an_allowed_helper_does_not_run_code_of_the_project(home: Path):
    work, mark = home / "work", home / "mark"
    (work / "company_token.py").write_text(f"open({str(mark)!r}, 'w').close()")
    helper = [sys.executable, "-m", "company_token"]
    file = write(work / ".mcp.json", servers(box={"url": URL, "headersHelper": " ".join(helper)}))
    approve(file, "box")
    projects.managed(
        home, {"allowedMcpServers": [{"serverUrl": "http://127.0.0.1:1/*"}, {"serverCommand": helper}]}
    )

    async with Host.configured() as host:
        await host.ready()
        reason = host.servers["box"].reason or ""

    assert "its headersHelper ended with exit code 1" in reason
    assert not mark.exists()


@pytest.mark.parametrize(
    ("helper", "policy", "env"),
    [
        ("python3 -m token", Policy(), {"PYTHONSAFEPATH": "1"}),
        ("/usr/bin/python3 a/token.py", Policy(), {"PYTHONSAFEPATH": "1", "PYTHONPATH": "/w/a"}),
        ("print-token", Policy(allowed=()), {"PYTHONSAFEPATH": "1"}),
        ("a | b", Policy(allowed=()), {"PYTHONSAFEPATH": "1"}),
        ("print-token", Policy(), {"PYTHONSAFEPATH": ""}),
    ],
)
def test_t124_the_environment_of_a_headers_helper(helper: str, policy: Policy, env: dict[str, str]):
    config = ServerConfig(type="http", url=URL, headers_helper=helper, cwd="/w", env={"PYTHONSAFEPATH": ""})

    assert as_started(config, policy).env == env
