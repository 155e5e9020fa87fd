"""T802: settings behind a symlink into a folder of dotfiles cannot be read, found or changed by a model
without permission, where the person works in that folder."""

from pathlib import Path
from typing import Any

import pytest

from dragoman import Host, paths
from dragoman.agent.agent_tools import Folders, open_agent_tools
from dragoman.interaction import PermissionQuestion
from dragoman.tui.permission_question import NO_RULE, folder_rules

pytestmark = pytest.mark.requirement("AGT-2")
CANARY = "canary-token-0123456789"


@pytest.fixture
def dotfiles(home: Path) -> Path:
    folder = (home / "dotfiles").resolve()
    for place in ("settings.json", "state/one.json", "plugins/mine/.mcp.json", "agents/mine.md", "notes.md"):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(f'{{"note": "{CANARY}"}}')
    (home / ".dragoman").mkdir(exist_ok=True)
    return folder


async def result(folder: Path, tool: str, **arguments: Any) -> str:
    opened = Host({}, permission_mode="dontAsk")
    async with opened as host, open_agent_tools(host, Folders(folder)) as agent_tools:
        return (await agent_tools.toolbox.call(tool, arguments)).text


@pytest.mark.parametrize(("link", "file"), [("settings.json", "settings.json"), ("state", "state/one.json")])
async def test_t802_the_settings_are_not_read_without_a_rule(
    home: Path, dotfiles: Path, link: str, file: str
):
    (home / ".dragoman" / link).symlink_to(dotfiles / link)
    assert "Read was not allowed" in await result(dotfiles, "Read", file_path=file)
    assert CANARY in await result(dotfiles, "Read", file_path="notes.md")
    assert file not in await result(dotfiles, "Grep", pattern=CANARY, output="files")
    assert file not in await result(dotfiles, "Glob", pattern="**/*")


def allowed_with_one_answer(folder: Path) -> int:
    """The number of rules that allow all changes of files in the folder."""
    arguments = {"file_path": str(folder / "notes.md")}
    question = PermissionQuestion(server="", tool="Edit", title="", arguments=arguments, reason=NO_RULE)
    return len(folder_rules(question, folder))


@pytest.mark.parametrize("link", ["settings.json", "plugins", "plugins/mine", "agents/mine.md"])
def test_t802_a_permission_for_all_edits_in_the_folder_is_not_offered(home: Path, dotfiles: Path, link: str):
    assert allowed_with_one_answer(dotfiles) > 0
    (home / ".dragoman" / link).parent.mkdir(exist_ok=True)
    (home / ".dragoman" / link).symlink_to(dotfiles / link)
    assert allowed_with_one_answer(dotfiles) == 0


async def test_t802_the_files_of_a_personal_plugin_can_be_read(home: Path, dotfiles: Path):
    (home / ".dragoman/plugins").mkdir()
    (home / ".dragoman/plugins/mine").symlink_to(dotfiles / "plugins/mine")
    assert CANARY in await result(dotfiles / "plugins/mine", "Read", file_path=".mcp.json")


def test_t802_broken_or_circular_symlinks_change_nothing(home: Path, dotfiles: Path):
    (home / ".dragoman/loop").symlink_to("loop")
    (home / ".dragoman/gone").symlink_to("/no/such/place")
    (home / ".dragoman/plugins").write_text("no folder")
    assert set(paths.links_in_config()) == {"loop", "gone"}
    assert allowed_with_one_answer(dotfiles) > 0
