"""T130: a setting that forbids something and is misspelled is not ignored."""

from pathlib import Path
from typing import Any

import pytest

from tests.torture import projects

ENTRY = {"command": "/bin/echo"}
BLOCKING = [{"matcher": "*", "hooks": [{"type": "command", "command": "exit 2"}]}]
PLACES = {
    "user": ".dragoman/settings.json",
    "managed": "managed/managed-mcp.json",
    "local": "work/.dragoman/settings.local.json",
}
EVERYWHERE: list[dict[str, Any]] = [
    {"Permissions": {"deny": ["mcp__box"]}},
    {"permissions": {"deny ": ["mcp__box"]}},
    {"DeniedMcpServers": [{"serverName": "box"}]},
    {"disabledMCPServers": ["box"]},
    {"disabledMcpServers": [{"serverName": "box"}]},
    {"disabledMcpjsonServers": [None]},
]
CASES = [
    *((place, said) for place in PLACES for said in EVERYWHERE),
    ("user", {"Hooks": {"PreToolUse": BLOCKING}}),
    ("user", {"hooks": {"preToolUse": BLOCKING}}),
    ("managed", {"Hooks": {"PreToolUse": BLOCKING}}),
    ("managed", {"AllowedMcpServers": []}),
    ("managed", {"allowManagedMCPServersOnly": True}),
]


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize(("place", "said"), CASES, ids=str)
def test_t130_a_misspelled_key_refuses_every_server_until_it_is_corrected(
    home: Path, place: str, said: dict[str, Any]
):
    file = projects.write(home / PLACES[place], said)
    seen = projects.seen(given={"box": ENTRY})
    assert seen.servers["box"].eligibility == "refused"
    assert str(file) in (seen.servers["box"].reason or "")


def test_t130_an_unknown_key_beside_the_rules_is_reported(home: Path):
    file = projects.write(home / PLACES["user"], {"permissions": {"denied": ["mcp__box"]}})
    assert projects.seen(given={"box": ENTRY}).problems == (
        f"{file}, line 3, column 5: permissions: unknown key 'denied'; did you mean deny?",
    )
