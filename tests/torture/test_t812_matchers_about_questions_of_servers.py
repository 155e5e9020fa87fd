"""T812: a hook about the elicitations of a server declines them however its matcher spells the server: it
was compared exactly, so that a form was shown, or answered, in spite of the hook."""

from pathlib import Path

import pytest

from dragoman import Host, hook
from dragoman.interaction import FormAnswer
from dragoman.testing import ScriptedUser
from tests.servers import stdio_server
from tests.torture import projects

pytestmark = pytest.mark.requirement("PRM-1")
NAME = "home.drive"
MATCHERS = [
    "home.drive",
    "Home.Drive",
    "home_drive",
    "mcp__home_drive",
    "mcp__home_drive__*",
    "mcp__home.drive__.*",
]
MATCHERS += ["gitlab, home.drive", "'home.drive'", "HOME.*"]
ACCEPT = {"hookSpecificOutput": {"action": "accept", "content": {"name": "hook"}}}
DECLINE = {"hookSpecificOutput": {"action": "decline"}}


async def elicitation_answer(event: str, matcher: str, answer: object) -> str:
    """The answer that the server receives for its elicitation; the person answers `person`."""
    user = ScriptedUser(forms=[FormAnswer("accept", {"name": "person"})])
    deciding = hook(lambda given: answer, event, matcher=matcher)
    entry = stdio_server("asks_for_a_name.py", protocol="2026-07-28")
    async with Host(
        {NAME: entry}, hooks=[deciding], interaction=user, permission_mode="bypassPermissions"
    ) as host:
        await host.ready()
        return (await host.call("mcp__home_drive__greet")).text


@pytest.mark.parametrize("matcher", MATCHERS)
@pytest.mark.parametrize("event", ["Elicitation", "ElicitationResult"])
async def test_t812_an_elicitation_is_declined(home: Path, event: str, matcher: str):
    assert await elicitation_answer(event, matcher, DECLINE) == '{"action": "decline"}'


async def test_t812_a_managed_hook_declines_an_elicitation(home: Path):
    entry = {"type": "command", "command": "exit 2"}
    projects.managed(home, {"hooks": {"Elicitation": [{"matcher": "Home_Drive", "hooks": [entry]}]}})
    user = ScriptedUser(forms=[FormAnswer("accept", {"name": "person"})])
    servers = {NAME: stdio_server("asks_for_a_name.py", protocol="2026-07-28")}
    async with Host(servers, interaction=user, permission_mode="bypassPermissions") as host:
        await host.ready()
        assert (await host.call("mcp__home_drive__greet")).text == '{"action": "decline"}'


async def test_t812_a_hook_accepts_an_elicitation_only_if_it_names_exactly_this_server(home: Path):
    assert '"hook"' in await elicitation_answer("Elicitation", NAME, ACCEPT)
    assert '"person"' in await elicitation_answer("Elicitation", "Home.Drive", ACCEPT)


async def test_t812_a_hook_about_another_server_declines_nothing(home: Path):
    assert '"person"' in await elicitation_answer("Elicitation", "home_drives", DECLINE)
