"""T120: policy judges the URL that an entry leads to, also where the entry does not contain it."""

from pathlib import Path
from typing import Any

import pytest

from tests.torture import projects
from tests.torture.projects import servers

pytestmark = pytest.mark.requirement("CFG-7")

LOCAL = {"sse-ide": "http://127.0.0.1", "ws-ide": "ws://127.0.0.1"}


def eligibility(home: Path, policy: dict[str, Any], entry: dict[str, Any]) -> str:
    projects.managed(home, policy)
    projects.user(home, servers(box=entry))
    return projects.eligibilities()["box"]


@pytest.mark.parametrize("kind", LOCAL)
def test_t120_an_editor_found_by_its_lockfile_is_denied_by_its_address(home: Path, kind: str):
    for pattern in ("*", LOCAL[kind], f"{LOCAL[kind]}:*", "*://127.*"):
        assert eligibility(home, {"deniedMcpServers": [{"serverUrl": pattern}]}, {"type": kind}) == "refused"
    elsewhere = {"deniedMcpServers": [{"serverUrl": "*://*.example.com"}]}
    assert eligibility(home, elsewhere, {"type": kind}) == "ready"


@pytest.mark.parametrize("kind", LOCAL)
def test_t120_an_editor_with_an_unknown_port_is_admitted_by_no_address(home: Path, kind: str):
    for pattern in ("*", LOCAL[kind], f"{LOCAL[kind]}:*"):
        assert eligibility(home, {"allowedMcpServers": [{"serverUrl": pattern}]}, {"type": kind}) == "refused"


def test_t120_a_variable_cannot_be_hidden_in_the_name_of_another(home: Path):
    policy = {"allowedMcpServers": [{"serverCommand": ["/bin/echo", "a"]}]}
    entry = {"command": "/bin/echo", "args": ["a"], "env": {"LD_PRELOAD=/tmp/x.so:A_TOKEN": "x"}}
    assert eligibility(home, {}, entry) == "broken"
    assert eligibility(home, policy, entry) == "refused"
    entry["env"] = {"A_TOKEN": "LD_PRELOAD=/tmp/x.so"}
    assert eligibility(home, policy, entry) == "ready"
