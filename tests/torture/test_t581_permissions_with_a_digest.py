"""T581: a permanent permission with a digest applies to any server of that name with the same tool
definition, so the approval question of a project's server or agent shows it."""

import json
import sys
from pathlib import Path

import pytest

from dragoman import Host
from dragoman.config.scopes import Sources
from dragoman.interaction import PermissionAnswer
from dragoman.testing import ScriptedUser
from tests.e2e import forked
from tests.servers import SERVER_PROGRAMS
from tests.torture.projects import servers, user, write

pytestmark = pytest.mark.requirement("CFG-8")
SAME_PROGRAM = {"command": sys.executable, "args": ["-S", "-E", str(SERVER_PROGRAMS / "well_behaved.py")]}
LISTED_RULES = "! these allow rules apply to its tools with exactly the definition that was allowed: "


async def allowed_always(home: Path) -> str:
    """The rule of a permanent permission for the person's own server."""
    user(home, servers(gh=SAME_PROGRAM))
    async with Host(Sources.here(), interaction=ScriptedUser(PermissionAnswer(True, always="user"))) as host:
        await host.ready(timeout=20)
        await host.call("mcp__gh__echo")
    (rule,) = json.loads((home / ".dragoman/settings.json").read_text())["permissions"]["allow"]
    assert rule.startswith("mcp__gh__echo@")
    user(home, {"permissions": {"allow": [rule]}})
    return rule


async def test_t581_the_question_about_a_server_shows_the_rule(home: Path):
    rule = await allowed_always(home)
    write(home / "work/.mcp.json", servers(gh={**SAME_PROGRAM, "env": {"OF": "the repository"}}))
    ended = forked.run("mcp", "approve", "gh", "--yes")
    assert f"{LISTED_RULES}{rule}" in " ".join(ended.stderr.split())
    asked = ScriptedUser(False)
    async with Host(Sources.here(), interaction=asked) as host:
        await host.ready(timeout=20)
        assert (await host.call("mcp__gh__echo")).error is None
    assert asked.asked == []


async def test_t581_the_question_about_an_agent_shows_the_rule(home: Path):
    rule = await allowed_always(home)
    file = home / "work/.dragoman/agents/helper.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nservers: [{gh: {command: ./tool}}]\n---\nYou work.\n")
    ended = forked.run("agents", "approve", "helper", "--yes")
    assert f"{LISTED_RULES}{rule} " in " ".join(ended.stdout.split())
