"""T160: project settings that cannot be read differ from missing settings; corrected ones apply at once."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman import Host
from dragoman.config.file_watch import stamps
from dragoman.config.scopes import Sources
from dragoman.events import ConfigurationChanged
from tests.servers import stdio_server
from tests.torture import projects

ENTRY = {"command": "/bin/echo"}
DENY = {"permissions": {"deny": ["mcp__box__echo"]}}


def leads_nowhere(folder: Path) -> str:
    folder.symlink_to(folder.parent / "gone")
    return "it is a link that leads nowhere"


def leads_nowhere_outside(folder: Path) -> str:
    folder.symlink_to("/no/such/folder")
    return "it is a link that leads nowhere"


def leads_to_itself(folder: Path) -> str:
    folder.symlink_to(folder)
    return "it is a link that leads nowhere"


def is_a_file(folder: Path) -> str:
    folder.write_text("{}")
    return "it is not a folder"


def leads_to_a_file(folder: Path) -> str:
    (folder.parent / "file").write_text("{}")
    folder.symlink_to("file")
    return "it is not a folder"


HIDDEN: list[Callable[[Path], str]] = [
    leads_nowhere,
    leads_nowhere_outside,
    leads_to_itself,
    is_a_file,
    leads_to_a_file,
]
hidden = pytest.mark.parametrize("hide", HIDDEN, ids=lambda hide: hide.__name__)


@pytest.mark.requirement("PRM-1")
@hidden
def test_t160_unreadable_settings_refuse_every_server_and_the_path_is_named(
    home: Path, hide: Callable[[Path], str]
):
    folder = home / "work" / ".dragoman"
    reason = hide(folder)
    told = f"{folder}: {reason}; correct the file, or ignore it for one run with --ignore-broken-settings"
    seen = projects.seen(given={"box": ENTRY})
    assert seen.servers["box"].eligibility == "refused"
    assert seen.servers["box"].reason == f"settings cannot be read: {told}"
    assert seen.problems == (f"settings cannot be read, so no server is started and no call is made: {told}",)
    lifted = projects.seen(given={"box": ENTRY}, ignore_broken_settings=True)
    assert lifted.servers["box"].eligibility == "ready"
    assert lifted.problems == (
        f"{folder}: {reason}; the file is left out; what it forbids is not applied in this run",
    )


@pytest.mark.requirement("PRM-1")
@hidden
async def test_t160_a_running_host_keeps_the_deny_rules_read_before(home: Path, hide: Callable[[Path], str]):
    folder = projects.write(home / "work" / ".dragoman" / "settings.local.json", DENY).parent
    async with Host.configured(
        servers={"box": stdio_server("well_behaved.py")}, permission_mode="bypassPermissions"
    ) as host:
        await host.ready(timeout=30)
        assert host.problems == ()
        shutil.rmtree(folder)
        reason = hide(folder)
        await host.reload()
        assert host.problems == (f"{folder}: {reason}; the version read before stays in effect",)
        assert (await host.call("mcp__box__echo", {"message": "x"})).is_error
        before = stamps(Sources.here())
        folder.unlink()
        assert stamps(Sources.here()) != before, "a host that watches looks again"
        await host.reload()
        assert host.problems == ()
        assert (await host.call("mcp__box__echo", {"message": "x"})).text == "x"


PROBLEMS = {
    "a file": '{"permissions": {"deny": [],}}',
    "a key": '{"permissions": {"denied": []}}',
    "a rule": '{"permissions": {"deny": ["mcp__box__echo("]}}',
    "a hook": '{"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "unknown"}]}]}}',
}


@pytest.mark.requirement("CFG-11")
@pytest.mark.parametrize("text", PROBLEMS.values(), ids=list(PROBLEMS))
async def test_t160_problems_found_by_a_reload_are_reported_until_they_are_corrected(home: Path, text: str):
    file = projects.user(home, {})
    async with Host.configured(servers={"box": stdio_server("well_behaved.py")}) as host:
        events = host.events()
        assert host.problems == ()
        file.write_text(text)
        await host.reload()
        [problem] = host.problems
        assert str(file) in problem
        file.write_text(json.dumps({}))
        await host.reload()
        assert host.problems == ()
        told: list[tuple[str, ...]] = []
        async for event in events:
            if isinstance(event, ConfigurationChanged):
                told.append(event.problems)
            if len(told) == 2:
                break
        assert told == [(problem,), ()]
