"""T856: a person forbids `bypassPermissions` in their own settings, where only the administrator can; an
agent has the key `permissionMode` without a value, or `disallowedTool`. Nothing was restricted."""

from pathlib import Path

import pytest

from dragoman.agent.definitions import parse
from dragoman.agent.front_matter import InvalidAgent
from tests.torture import projects

pytestmark = pytest.mark.requirement("PRM-2")
PLACES = {"user": ".dragoman/settings.json", "local": "work/.dragoman/settings.local.json"}


@pytest.mark.parametrize("place", PLACES)
def test_t856_what_only_the_administrator_can_forbid_is_reported(home: Path, place: str):
    rules = {"disableBypassPermissionsMode": "disable"}
    file = projects.write(home / PLACES[place], {"permissions": rules})
    problem = "permissions: disableBypassPermissionsMode has no effect here; it belongs in the managed file"
    assert projects.seen().problems == (f"{file}, line 3, column 5: {problem}",)


def test_t856_in_the_administrators_file_it_has_an_effect(home: Path):
    rules = {"disableBypassPermissionsMode": "disable"}
    projects.write(home / "managed/managed-mcp.json", {"permissions": rules})
    assert projects.seen().problems == ()


@pytest.mark.parametrize("key", ["permissionMode", "maxTurns"])
@pytest.mark.parametrize("value", ["", " ~", " null"])
def test_t856_an_agent_with_a_key_without_value_is_not_used(key: str, value: str):
    with pytest.raises(InvalidAgent, match=f'"{key}" has no value'):
        parse(f"---\n{key}:{value}\n---\nWork.", Path("a.md"), "user")


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("tool", "tools"),
        ("disallowedTool", "disallowedTools"),
        ("server", "servers"),
        ("requiredServer", "requiredServers"),
        ("maxTurn", "maxTurns"),
        ("allowed-tool", "tools"),
        ("permissionModes", "permissionMode"),
    ],
)
def test_t856_an_agent_with_a_key_in_the_singular_or_plural_is_not_used(key: str, wanted: str):
    with pytest.raises(InvalidAgent, match=f'"{key}" must be written "{wanted}"'):
        parse(f"---\n{key}: 3\n---\nWork.", Path("a.md"), "user")


def test_t856_other_keys_of_an_agent_may_be_without_value():
    agent = parse("---\ndescription:\nmodel:\n---\nWork.", Path("a.md"), "user")
    assert (agent.description, agent.model) == ("", None)
