"""T640: the file of a person's answers is behind a symlink whose target, or the folder of it, is missing.
Unreachable answers are not absent: refusals remain, and running servers stay."""

import asyncio
from pathlib import Path

import pytest

from dragoman import Host
from dragoman.config import approval
from dragoman.config.load import load
from dragoman.config.scopes import Sources
from tests.servers import stdio_server
from tests.torture.projects import approve, eligibilities, servers, user, write

ENTRY = {"command": "box"}


@pytest.mark.requirement("CFG-8")
def test_t640_an_unreachable_refusal_is_not_overridden(home: Path):
    user(home, {"enableAllProjectMcpServers": True})
    file = write(home / "work" / ".mcp.json", servers(box=ENTRY))
    answers = Sources.here().approvals_file
    approval.remember(answers, file, "box", ENTRY, "rejected")
    elsewhere = answers.rename(home / "elsewhere.json")
    answers.symlink_to(elsewhere)
    assert eligibilities() == {"box": "rejected"}

    away = elsewhere.rename(home / "away.json")
    assert eligibilities() == {"box": "pending"}
    problem = f"{answers}: it is a link that leads nowhere; no approval is taken from it"
    assert problem in load(Sources.here()).problems

    away.rename(elsewhere)
    assert eligibilities() == {"box": "rejected"}


@pytest.mark.requirement("CFG-11")
@pytest.mark.parametrize("linked", ["the file", "the folder"])
async def test_t640_a_server_keeps_running_while_its_approval_is_unreachable(home: Path, linked: str):
    file = write(home / "work" / ".mcp.json", servers(calm=stdio_server("well_behaved.py")))
    approve(file, "calm")
    answers = Sources.here().approvals_file
    place = answers if linked == "the file" else answers.parent
    elsewhere = place.rename(home / "elsewhere")
    place.symlink_to(elsewhere)
    async with Host.configured(permission_mode="bypassPermissions") as host:
        await host.ready(timeout=30)
        assert host.servers["calm"].status == "connected"

        elsewhere.rename(home / "away")
        async with asyncio.timeout(30):
            plan = await host.reload()
        assert plan.is_empty
        assert f"{place}: it is a link that leads nowhere; the answers read before stay in effect" in (
            host.problems
        )
        outcome = await host.call("mcp__calm__echo", {"message": "still here"})
        assert outcome.text == "still here"

        (home / "away").rename(elsewhere)
        async with asyncio.timeout(30):
            await host.reload()
        assert host.problems == ()
        assert host.servers["calm"].status == "connected"
