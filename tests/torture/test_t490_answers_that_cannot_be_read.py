"""T490: the file of answers about a project's servers is damaged. A server that the person declined there,
or approved in another form, is not started because settings approve it by name or approve every server."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import approval
from dragoman.config.scopes import Sources
from tests.torture import projects

pytestmark = pytest.mark.requirement("CFG-8")

ENTRY = {"command": "/bin/echo"}


def _rows(text: str, value: Any) -> str:
    return json.dumps({"files": dict.fromkeys(json.loads(text)["files"], value)})


DAMAGE: dict[str, Callable[[str], bytes]] = {
    "cut off": lambda text: text[:-5].encode(),
    "empty": lambda text: b"",
    "UTF-16": lambda text: text.encode("utf-16"),
    "an array": lambda text: b"[]",
    "an array for all files": lambda text: b'{"files": []}',
    "an array for one file": lambda text: _rows(text, []).encode(),
    "null for one file": lambda text: _rows(text, None).encode(),
    "a decision with a typing error": lambda text: text.replace('"decision": "', '"decision": "x').encode(),
    "an answer of another kind": lambda text: _rows(text, {"box": True}).encode(),
}
CHOICES: list[dict[str, Any]] = [{"enableAllProjectMcpServers": True}, {"enabledMcpjsonServers": ["box"]}]


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: next(iter(choice)))
@pytest.mark.parametrize("damage", DAMAGE)
def test_t490_a_declined_server_is_not_started(home: Path, damage: str, choice: dict[str, Any]):
    projects.user(home, choice)
    file = projects.write(home / "work" / ".mcp.json", projects.servers(box=ENTRY))
    answers = Sources.here().approvals_file
    approval.remember(answers, file, "box", ENTRY, "rejected")
    assert projects.eligibilities() == {"box": "rejected"}

    answers.write_bytes(DAMAGE[damage](answers.read_text()))

    seen = projects.seen()
    assert {name: server.eligibility for name, server in seen.servers.items()} == {"box": "pending"}
    assert [problem for problem in seen.problems if str(answers) in problem]


@pytest.mark.parametrize("damage", DAMAGE)
def test_t490_a_name_stays_bound_to_the_approved_entry(home: Path, damage: str):
    projects.user(home, {"enabledMcpjsonServers": ["box"]})
    file = projects.write(home / "work" / ".mcp.json", projects.servers(box={"command": "/bin/true"}))
    answers = Sources.here().approvals_file
    approval.remember(answers, file, "box", ENTRY, "approved")
    assert projects.eligibilities() == {"box": "pending"}

    answers.write_bytes(DAMAGE[damage](answers.read_text()))

    assert projects.eligibilities() == {"box": "pending"}


def test_t490_a_damaged_answer_does_not_affect_the_others(home: Path):
    projects.user(home, CHOICES[0])
    file = projects.write(home / "work" / ".mcp.json", projects.servers(box=ENTRY, other=ENTRY))
    answers = Sources.here().approvals_file
    approval.remember(answers, file, "box", ENTRY, "rejected")
    answers.write_bytes(DAMAGE["an answer of another kind"](answers.read_text()))
    assert projects.eligibilities() == {"box": "pending", "other": "ready"}

    projects.approve(file, "box")
    assert projects.eligibilities() == {"box": "ready", "other": "ready"}
