"""T714: several names in one text of `disabledTools`, with commas or bars, disable each of these tools."""

import pytest

from dragoman.config.model import ServerConfig, parse_entry

pytestmark = pytest.mark.requirement("PRM-1")
TOOLS = ("get", "rm", "drop_all", "move to", "move")


def offered(*disabled: str) -> list[str]:
    config = parse_entry("box", {"command": "x", "disabledTools": list(disabled)})
    assert config == ServerConfig(type="stdio", command="x", disabled_tools=disabled)
    return [tool for tool in TOOLS if config.offers(tool)]


@pytest.mark.parametrize(
    "text",
    ["rm,drop_all", "rm, drop_all", "RM|drop_*", "rm;drop_all", "mcp__box__rm, Drop_All,"],
)
def test_t714_each_of_the_tools_is_disabled(text: str):
    assert offered(text) == ["get", "move to", "move"]
    assert offered("move", text) == ["get", "move to"]


def test_t714_literal_tool_names_are_matched_as_before():
    assert offered("rm") == ["get", "drop_all", "move to", "move"]
    assert offered("move to") == ["get", "rm", "drop_all", "move"]
    assert offered("", " ", ",", "|", "nothing") == list(TOOLS)
    assert offered("*,") == []
