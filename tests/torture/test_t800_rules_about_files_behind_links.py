"""T800: a deny or ask rule about a file also applies where its path, or the home folder in it, is a
symlink."""

import contextlib
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.agent.agent_tools import Folders, open_agent_tools
from dragoman.agent.mentions import expanded
from tests.torture.test_t137_spellings_of_arguments import decided

pytestmark = pytest.mark.requirement("PRM-1")


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in a home folder that is a symlink, as `/home` is one to `/var/home`."""
    home = tmp_path / "var/home/me"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id").write_text("canary")
    (tmp_path / "home").symlink_to("var/home")
    monkeypatch.setenv("HOME", str(tmp_path / "home/me"))
    (home / "work/shared").mkdir(parents=True)
    (home / "work/shared/key").write_text("canary")
    (home / "work/shared.env").write_text("canary")
    (home / "work/secrets").symlink_to("shared")
    (home / "work/.env").symlink_to("shared.env")
    return tmp_path / "home/me/work"


async def answer(work: Path, tool: str, arguments: dict[str, Any], **rules: list[str]) -> str:
    opened = Host({}, rules=rules, permission_mode="bypassPermissions")
    async with opened as host, open_agent_tools(host, Folders(work)) as agent_tools:
        return (await agent_tools.toolbox.call(tool, arguments)).text


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ('"~/.ssh/*"', "~/.ssh/id"),
        ('"~/.ssh/*"', "../.ssh/id"),
        ('"~/.ssh/id"', "{tmp}/var/home/me/.ssh/id"),
        ("{tmp}/home/me/.ssh/*", "~/.ssh/id"),
        ("{tmp}/home/*/.ssh/*", "~/.ssh/id"),
        ("{tmp}/home/me/work/secrets/*", "secrets/key"),
        ("{tmp}/home/me/work/secrets/*", "shared/key"),
        ("{tmp}/var/home/me/work/secrets/*", "secrets/../secrets/key"),
        ("{tmp}/home/me/work/.env", "shared.env"),
        ("*/.env", ".env"),
        ("*/secrets/*", "secrets/key"),
    ],
)
@pytest.mark.parametrize("behaviour", ["deny", "ask"])
async def test_t800_a_rule_about_a_file_behind_a_symlink_applies(
    work: Path, tmp_path: Path, behaviour: str, rule: str, path: str
):
    rules = {behaviour: [f"{tool}(file_path={rule.format(tmp=tmp_path)})" for tool in ("Read", "Write")]}
    arguments = {"file_path": path.format(tmp=tmp_path)}
    assert f"{behaviour} rule Read" in await answer(work, "Read", arguments, **rules)
    assert f"{behaviour} rule Write" in await answer(work, "Write", {**arguments, "content": "x"}, **rules)


@pytest.mark.parametrize("path", ["secrets", "secrets/key", ".env"])
async def test_t800_a_search_through_a_symlink_shows_no_denied_file(work: Path, path: str):
    rules = ["Read(file_path=*/secrets/*)", "Read(file_path=*/.env)"]
    shown = await answer(work, "Grep", {"pattern": "canary", "path": path}, deny=rules)
    assert shown == "(1 file left out because of a rule about Read.)"


async def test_t800_a_mention_of_a_symlink_adds_no_denied_file(work: Path):
    async with Host({}, rules={"deny": ["Read(file_path=*/.env)"]}) as host:
        text, problems = await expanded("See @.env", host, work)
    assert (text, problems) == ("See @.env", ["@.env was not added: a rule about Read denies it"])


async def test_t800_other_files_are_not_matched(work: Path):
    rules = ['Read(file_path="~/.ssh/*")', "Read(file_path=*/.env)", "Read(file_path=*/secrets/*)"]
    assert "canary" in await answer(work, "Read", {"file_path": "shared/key"}, deny=rules)
    assert "canary" in await answer(work, "Read", {"file_path": "shared.env"}, deny=rules)


def test_t800_a_servers_argument_is_also_compared_as_a_resolved_path(work: Path, tmp_path: Path):
    real = f"{tmp_path}/var/home/me/.ssh/id"
    with contextlib.chdir(work):
        assert decided("deny", 'path="~/.ssh/*"', path=real) == "deny"
        assert decided("deny", f"path={tmp_path}/home/me/.ssh/*", path=real) == "deny"
        for path in ("~/.ssh/id", f"{tmp_path}/home/me/.ssh/id", f"file://{tmp_path}/home/me/.ssh/id"):
            assert decided("deny", f"path={tmp_path}/var/home/me/.ssh/*", path=path) == "deny"
        assert decided("allow", 'path!="~/.ssh/*"', path=real) == "ask"
        assert decided("allow", f"path={tmp_path}/home/me/.ssh/*", path=real) == "ask", "compared exactly"
