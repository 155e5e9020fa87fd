"""T853: a key that forbids something is in the wrong place (`deny` beside `permissions`), or in the
administrator's file nearly the right key (`denyMcpServers`). It was reported, and what it forbids was
allowed."""

from pathlib import Path
from typing import Any

import pytest

from tests.torture import projects

pytestmark = pytest.mark.requirement("CFG-7")
PLACES = {
    "user": ".dragoman/settings.json",
    "managed": "managed/managed-mcp.json",
    "local": "work/.dragoman/settings.local.json",
}
HOOKS = [{"hooks": [{"type": "command", "command": "exit 2"}]}]
MISPLACED: list[tuple[dict[str, Any], str]] = [
    ({"deny": ["mcp__box"]}, '"deny" must be in "permissions"'),
    ({"Ask": ["mcp__box"]}, '"Ask" must be "ask" in "permissions"'),
    ({"default_mode": "plan"}, '"default_mode" must be "defaultMode" in "permissions"'),
    (
        {"permissions": {"deniedMcpServers": [{"serverName": "box"}]}},
        '"permissions": "deniedMcpServers" must be at the top level',
    ),
    (
        {"permissions": {"disabledMcpServers": ["box"]}},
        '"permissions": "disabledMcpServers" must be at the top level',
    ),
    ({"permissions": {"permissions": {}}}, '"permissions": "permissions" must be at the top level'),
]
OF_PERSON_AND_ADMINISTRATOR: list[tuple[dict[str, Any], str]] = [
    ({"PreToolUse": HOOKS}, '"PreToolUse" must be in "hooks"'),
    ({"permissions": {"hooks": {}}}, '"permissions": "hooks" must be at the top level'),
    (
        {"permissions": {"allowedMcpServers": []}},
        '"permissions": "allowedMcpServers" must be at the top level',
    ),
    ({"hooks": {"deny": ["mcp__box"]}}, '"hooks": "deny" must be in "permissions"'),
]
OF_ADMINISTRATOR: list[tuple[dict[str, Any], str]] = [
    ({"disableBypassPermissionsMode": "disable"}, '"disableBypassPermissionsMode" must be in "permissions"'),
    (
        {"permissions": {"allowManagedMcpServersOnly": True}},
        '"permissions": "allowManagedMcpServersOnly" must be at the top level',
    ),
]
NEARLY = {
    "denyMcpServers": "deniedMcpServers",
    "deniedMcpServer": "deniedMcpServers",
    "allowMcpServers": "allowedMcpServers",
    "disabledMcpServer": "disabledMcpServers",
    "allowManagedMcpServerOnly": "allowManagedMcpServersOnly",
    "permission": "permissions",
    "hook": "hooks",
    "servers": "mcpServers",
}
NEARLY_RULES = {
    "denied": "deny",
    "denys": "deny",
    "asks": "ask",
    "defaultModes": "defaultMode",
    "disableBypassPermissionMode": "disableBypassPermissionsMode",
}


def refusal(home: Path, place: str, document: dict[str, Any]) -> str:
    projects.write(home / PLACES[place], document)
    box = projects.seen(given={"box": {"command": "/bin/echo"}}).servers["box"]
    return "" if box.eligibility == "ready" else box.reason or ""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("document", "reason"), MISPLACED)
def test_t853_the_file_is_not_used_until_it_is_corrected(
    home: Path, place: str, document: dict[str, Any], reason: str
):
    assert reason in refusal(home, place, document)


@pytest.mark.parametrize("place", ["user", "managed"])
@pytest.mark.parametrize(("document", "reason"), OF_PERSON_AND_ADMINISTRATOR)
def test_t853_the_same_with_hooks(home: Path, place: str, document: dict[str, Any], reason: str):
    assert reason in refusal(home, place, document)


@pytest.mark.parametrize(("document", "reason"), OF_ADMINISTRATOR)
def test_t853_the_same_with_keys_of_the_administrator(home: Path, document: dict[str, Any], reason: str):
    assert reason in refusal(home, "managed", document)


@pytest.mark.parametrize("key", NEARLY)
def test_t853_nearly_a_key_of_the_administrator(home: Path, key: str):
    reason = f'unknown key "{key}"; did you mean "{NEARLY[key]}"?'
    assert reason in refusal(home, "managed", {key: []})
    (home / PLACES["managed"]).unlink()
    assert refusal(home, "user", {key: []}) == ""  # reported only


@pytest.mark.parametrize("key", NEARLY_RULES)
def test_t853_nearly_a_list_of_rules_of_the_administrator(home: Path, key: str):
    reason = f'"permissions": unknown key "{key}"; did you mean "{NEARLY_RULES[key]}"?'
    assert reason in refusal(home, "managed", {"permissions": {key: "x"}})


@pytest.mark.parametrize(
    "document",
    [
        {"permissions": {"allowed": ["mcp__box"], "additionalDirectories": []}},
        {"theme": "dark", "model": "x", "enabledMcpjsonServer": []},
        {"hooks": {"Notification": HOOKS, "Setup": HOOKS}},
    ],
)
def test_t853_other_unknown_keys_are_reported_only(home: Path, document: dict[str, Any]):
    assert refusal(home, "managed", document) == ""
