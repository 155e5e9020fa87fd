"""T713: an entry whose `disabledTools`, `enabledTools`, `disabled` or `enabled` is misspelled in case,
blanks or punctuation, or given twice, is refused: its server would offer forbidden tools."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.config.connectors import entries_of
from tests.servers import stdio_server
from tests.torture import projects

pytestmark = pytest.mark.requirement("PRM-1")
TOOLS = json.dumps([{"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("get", "rm")]}])
MISWRITTEN: list[tuple[dict[str, Any], str]] = [
    ({"disabledtools": ["rm"]}, "the field 'disabledtools' must be written 'disabledTools'"),
    ({"disabled_tools": ["rm"]}, "the field 'disabled_tools' must be written 'disabledTools'"),
    ({"disabledTools ": ["rm"]}, "the field 'disabledTools ' must be written 'disabledTools'"),
    ({"exclude-tools": ["rm"]}, "the field 'exclude-tools' must be written 'excludeTools'"),
    ({"EnabledTools": ["get"]}, "the field 'EnabledTools' must be written 'enabledTools'"),
    ({"include_tools": ["get"]}, "the field 'include_tools' must be written 'includeTools'"),
    ({"Disabled": True}, "the field 'Disabled' must be written 'disabled'"),
    ({"ENABLED": False}, "the field 'ENABLED' must be written 'enabled'"),
    (
        {"disabledTools": ["get"], "excludeTools": ["rm"]},
        "'excludeTools' and 'disabledTools' are the same field; write one of them only",
    ),
    (
        {"includeTools": ["get"], "enabledTools": ["get", "rm"]},
        "'includeTools' and 'enabledTools' are the same field; write one of them only",
    ),
]


@pytest.mark.parametrize(("fields", "reason"), MISWRITTEN, ids=str)
async def test_t713_the_server_is_refused_and_the_reason_names_the_field(
    home: Path, fields: dict[str, Any], reason: str
):
    given = {
        "box": stdio_server("lists_given_pages.py", TOOLS, **fields),
        "other": stdio_server("lists_given_pages.py", TOOLS),
    }
    async with Host(given) as host:
        await host.ready(timeout=30)
        assert [tool.name for tool in host.tools()] == ["mcp__other__get", "mcp__other__rm"]
        assert host.configuration.servers["box"].eligibility == "broken"
        assert f"server 'box': {reason}" in str(host.configuration.servers["box"].reason)


@pytest.mark.parametrize("scope", ["user", "project"])
def test_t713_an_entry_of_a_file_is_refused(home: Path, scope: str):
    block = projects.servers(box={"url": "https://box.example.com/mcp", "disabled_tools": ["rm"]})
    if scope == "user":
        projects.user(home, block)
    else:
        projects.approve(projects.write(home / "work" / ".mcp.json", block), "box")
    assert projects.eligibilities() == {"box": "broken"}


@pytest.mark.parametrize(("fields", "reason"), MISWRITTEN[:4], ids=str)
def test_t713_an_entry_of_a_connector_list_is_refused(fields: dict[str, Any], reason: str):
    entry = {"url": "https://box.example.com/mcp", **fields}
    assert entries_of({"mcpServers": {"box": entry}}) == ({}, [f"'box' is left out: {reason}"])


async def test_t713_other_unknown_fields_are_reported_and_the_server_is_used(home: Path):
    async with Host(
        {"box": stdio_server("lists_given_pages.py", TOOLS, excludeTools=["rm"], disabledThing=1)}
    ) as host:
        await host.ready(timeout=30)
        assert [tool.name for tool in host.tools()] == ["mcp__box__get"]
        assert len(host.servers["box"].problems) == 1
