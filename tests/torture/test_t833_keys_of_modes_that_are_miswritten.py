"""T833: a key that sets the permission mode is not passed over because it is written a little otherwise. The
administrator's `DefaultMode` had no effect, and the person's `bypassPermissions` was used; an agent whose
file has `permission-mode: plan` worked in the mode of the conversation."""

from pathlib import Path

import pytest

from dragoman.agent.definitions import parse
from dragoman.agent.front_matter import InvalidAgent
from tests.torture import projects

pytestmark = pytest.mark.requirement("PRM-2")
PLACES = {
    "user": ".dragoman/settings.json",
    "managed": "managed/managed-mcp.json",
    "local": "work/.dragoman/settings.local.json",
}
KEYS = ["DefaultMode", "default_mode", "default-mode", "defaultmode", "defaultMode "]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("key", KEYS)
def test_t833_no_server_is_used_until_it_is_corrected(home: Path, place: str, key: str):
    file = projects.write(home / PLACES[place], {"permissions": {key: "plan"}})
    box = projects.seen(given={"box": {"command": "/bin/echo"}}).servers["box"]
    assert box.eligibility == "refused"
    reason = f'{file}, line 3, column 5: "permissions": "{key}" must be written "defaultMode"'
    assert reason in (box.reason or "")


@pytest.mark.parametrize("key", ["permission-mode", "PermissionMode", "permission_mode"])
def test_t833_a_persons_agent_is_not_used(key: str):
    with pytest.raises(InvalidAgent, match=f'"{key}" must be written "permissionMode"'):
        parse(f"---\n{key}: plan\n---\nWork.", Path("a.md"), "user")


@pytest.mark.parametrize("scope", ["project", "plugin"])
def test_t833_in_other_agents_it_has_no_effect_however_it_is_written(scope: str):
    agent = parse("---\npermission-mode: plan\n---\nWork.", Path("a.md"), scope)  # pyright: ignore[reportArgumentType]
    assert agent.problems == ("permission-mode has no effect",)
