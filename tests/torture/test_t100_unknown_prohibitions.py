"""T100: Deny rules in a form that cannot be read are not ignored silently."""

from pathlib import Path
from typing import Any

import pytest

from tests.torture import projects

ENTRY = {"command": "/bin/echo"}


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize("place", ["user", "managed", "local"])
@pytest.mark.parametrize(
    "said",
    [
        {"permissions": {"deny": [{"tool": "mcp__box"}]}},
        {"permissions": {"deny": [["mcp__box"]]}},
        {"permissions": {"ask": ["mcp__x", 7]}},
        {"permissions": {"Deny": ["mcp__box"]}},
        {"permissions": {"ASK": []}},
    ],
    ids=str,
)
def test_rules_of_the_wrong_type_refuse_every_server(home: Path, place: str, said: dict[str, Any]):
    file = {
        "user": home / ".dragoman" / "settings.json",
        "managed": home / "managed" / "managed-mcp.json",
        "local": home / "work" / ".dragoman" / "settings.local.json",
    }[place]
    projects.write(file, said)
    seen = projects.seen(given={"box": ENTRY})
    assert seen.servers["box"].eligibility == "refused"
    assert str(file) in (seen.servers["box"].reason or "")


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize(
    "groups",
    [[{"hooks": {"type": "command", "command": "x"}}], [{"type": "command", "command": "x"}], ["x"]],
    ids=str,
)
def test_hook_groups_of_the_wrong_type_refuse_every_server(home: Path, groups: list[Any]):
    projects.user(home, {"hooks": {"PreToolUse": groups}})
    assert projects.seen(given={"box": ENTRY}).servers["box"].eligibility == "refused"


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize("place", ["user", "managed"])
@pytest.mark.parametrize(
    "item", ["box", {"servername": "box"}, {"name": "box"}, {"SERVERCOMMAND": ["/bin/echo"]}], ids=str
)
def test_a_denied_server_in_an_alternative_form_is_denied(home: Path, place: str, item: Any):
    getattr(projects, place)(home, {"deniedMcpServers": [item]})
    seen = projects.seen(given={"box": ENTRY, "other": {"command": "/bin/true"}})
    assert seen.servers["box"].eligibility == "refused"
    assert seen.servers["other"].eligibility == "ready"
