"""T804: a deny or ask rule about a file may name it relative to the person's folder: it had no effect, and
that was not reported."""

from pathlib import Path

import pytest

from dragoman import Host
from dragoman.agent.agent_tools import Folders, open_agent_tools
from dragoman.agent.mentions import expanded

pytestmark = pytest.mark.requirement("PRM-1")


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    work, more = tmp_path / "work", tmp_path / "more"
    for place in (work / ".env", work / "src/a", more / "b", tmp_path / "b", work / "sub/.env"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("canary")
    (work / "link").symlink_to("src")
    return Folders(work, (more,))


async def read(folders: Folders, path: str, **rules: list[str]) -> str:
    opened = Host({}, rules=rules, permission_mode="bypassPermissions")
    async with opened as host, open_agent_tools(host, folders) as agent_tools:
        return (await agent_tools.toolbox.call("Read", {"file_path": path})).text


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (".env", ".env"),
        ("./.env", ".env"),
        (".ENV", "src/../.env"),
        ("src/*", "src/a"),
        ("./src/**", "src/a"),
        ("src/*", "link/a"),
        ("link/*", "link/a"),
        ("*env", "sub/.env"),
        ("b", "../more/b"),
    ],
)
@pytest.mark.parametrize("behaviour", ["deny", "ask"])
async def test_t804_a_relative_rule_applies_in_the_persons_folders(
    folders: Folders, behaviour: str, pattern: str, path: str
):
    rules = {behaviour: [f"Read(file_path={pattern})"]}
    assert f"{behaviour} rule Read(file_path={pattern})" in await read(folders, path, **rules)


@pytest.mark.parametrize(("pattern", "path"), [(".env", "sub/.env"), ("a", "src/a"), ("b", "../b")])
async def test_t804_other_files_are_not_matched(folders: Folders, pattern: str, path: str):
    assert "canary" in await read(folders, path, deny=[f"Read(file_path={pattern})"])


@pytest.mark.parametrize("path", ["src/a", "link/a"])
async def test_t804_a_path_that_a_rule_excludes_is_not_denied_by_another_name(folders: Folders, path: str):
    exclusion = f"Read(file_path!={folders.folder.resolve()}/*)"
    assert "canary" in await read(folders, path, deny=[exclusion])
    assert "deny rule" in await read(folders, "../more/b", deny=[exclusion])
    assert "deny rule" in await read(folders, "src/a", deny=[exclusion, "Read(file_path=src/a)"])


async def test_t804_a_search_and_a_mention_leave_the_file_out(folders: Folders):
    async with Host({}, rules={"deny": ["Read(file_path=src/*)"]}) as host:
        async with open_agent_tools(host, folders) as agent_tools:
            found = await agent_tools.toolbox.call("Grep", {"pattern": "canary", "output": "files"})
        text, problems = await expanded("See @src/a", host, folders.folder)
    assert "src/a" not in found.text
    assert ".env" in found.text
    assert (text, problems) == ("See @src/a", ["@src/a was not added: a rule about Read denies it"])
