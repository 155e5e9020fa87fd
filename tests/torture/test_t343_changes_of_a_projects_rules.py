"""T343: a permission for every edit in a folder does not cover changes of the rule files there."""

from pathlib import Path

import pytest

from dragoman.config.schema import PermissionRules
from dragoman.interaction import PermissionQuestion
from dragoman.permissions.decide import decide
from dragoman.permissions.rules import Call, Rulebook
from dragoman.tui.permission_question import NO_RULE, folder_rules

pytestmark = pytest.mark.requirement("PRM-1")


def decisions(folder: Path, *names: str) -> list[str]:
    """The decisions about edits of these files, after a permission for all edits in the folder."""
    arguments = {"file_path": str(folder / "a.py")}
    question = PermissionQuestion(
        server="",
        tool="Edit",
        title="",
        arguments=arguments,
        risk="writes",
        open_world=False,
        reason=NO_RULE,
    )
    rules = folder_rules(question, folder)
    given = {kind: tuple(rule for each, rule in rules if each == kind) for kind in ("allow", "ask")}
    book = Rulebook.of([("dynamic", "code", PermissionRules(**given))])
    assert book.problems == ()
    calls = [
        Call(tool=tool, arguments={"file_path": str((folder / name).resolve())})
        for name in names
        for tool in ("Edit", "Write")
    ]
    return [decide(call, book.about(call), "default").behaviour for call in calls]


@pytest.mark.parametrize("name", ["plain", 'a "b" *c', "back\\slash"])
def test_t343_other_files_are_allowed_and_rule_files_are_asked_about(tmp_path: Path, name: str):
    folder = tmp_path / name
    folder.mkdir()
    assert decisions(folder, "b.py", "src/c.py") == ["allow"] * 4
    own = (".dragoman/settings.local.json", ".dragoman/agents/x.md", ".DRAGOMAN/settings.local.json")
    assert decisions(folder, *own) == ["ask"] * 6


@pytest.mark.parametrize("link", [".dragoman", ".dragoman/settings.local.json"])
def test_t343_rule_files_behind_a_symlink_are_asked_about(tmp_path: Path, link: str):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/settings.local.json").write_text("{}")
    (tmp_path / link).parent.mkdir(exist_ok=True)
    target = tmp_path / "conf" / ("settings.local.json" if link.endswith("json") else "")
    (tmp_path / link).symlink_to(target)
    assert decisions(tmp_path.resolve(), "conf/settings.local.json") == ["ask"] * 2
