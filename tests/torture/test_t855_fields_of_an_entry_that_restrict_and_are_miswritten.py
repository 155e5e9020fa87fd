"""T855: `oauth.scope`, as the parameter is called in OAuth, was an unknown field: a token for everything that
the server has was requested. So was `enabledTool`, and with `"enabledTools": null` all tools were offered."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.config.model import parse_entry
from dragoman.errors import ConfigError
from tests.torture import projects

pytestmark = pytest.mark.requirement("CFG-5")
URL = {"url": "https://example.com/mcp"}
ENTRIES: list[tuple[dict[str, Any], str]] = [
    ({"oauth": {"scope": "read"}}, "the field 'scope' must be written 'scopes'"),
    ({"oauth": {"Scope": "read"}}, "the field 'Scope' must be written 'scopes'"),
    ({"oauth": {"issuers": "https://a.example"}}, "the field 'issuers' must be written 'issuer'"),
    ({"oauth": {"DPoP": True}}, "the field 'DPoP' must be written 'dpop'"),
    ({"enabledTool": ["a"]}, "the field 'enabledTool' must be written 'enabledTools'"),
    ({"disabled_tool": ["a"]}, "the field 'disabled_tool' must be written 'disabledTools'"),
    ({"excludeTool": ["a"]}, "the field 'excludeTool' must be written 'excludeTools'"),
    ({"root": False}, "the field 'root' must be written 'roots'"),
    ({"enabledTools": None}, "'enabledTools' has no value: write [] for none, or leave the field out"),
    ({"includeTools": None}, "'includeTools' has no value: write [] for none, or leave the field out"),
]


@pytest.mark.parametrize(("fields", "reason"), ENTRIES)
def test_t855_the_entry_is_not_used(home: Path, fields: dict[str, Any], reason: str):
    projects.write(home / ".dragoman/settings.json", {"mcpServers": {"box": {**URL, **fields}}})
    box = projects.seen().servers["box"]
    assert box.eligibility == "broken"
    assert reason in (box.reason or "")


@pytest.mark.parametrize(("fields", "reason"), ENTRIES)
def test_t855_nor_is_one_of_a_program(fields: dict[str, Any], reason: str):
    with pytest.raises(ConfigError) as raised:
        parse_entry("box", {**URL, **fields})
    assert str(raised.value).startswith(f"server 'box': {reason}")


def test_t855_the_right_fields_are_used():
    config = parse_entry("box", {**URL, "enabledTools": [], "oauth": {"scopes": "read", "dpop": True}})
    assert config.oauth is not None
    assert (config.enabled_tools, config.oauth.scopes, config.oauth.dpop) == ((), "read", True)
