"""T805: a deny or ask rule that names an argument of a built-in tool as another tool names it applies: it
had no effect, and that was not reported."""

from pathlib import Path

import pytest

from dragoman import Host
from dragoman.agent.agent_tools import Folders, open_agent_tools
from dragoman.config.schema import PermissionRules
from dragoman.errors import ConfigError
from dragoman.permissions.decide import decide
from dragoman.permissions.rules import Call, Rulebook

pytestmark = pytest.mark.requirement("PRM-1")


@pytest.mark.parametrize("name", ["path", "file_path", "file", "filePath", "Path"])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"file_path": "keys/id"}),
        ("Write", {"file_path": "keys/new", "content": "x"}),
        ("Grep", {"path": "keys/id", "pattern": "canary"}),
    ],
    ids=str,
)
async def test_t805_a_path_argument_is_matched_by_every_name(
    tmp_path: Path, name: str, tool: str, arguments: dict[str, str]
):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/id").write_text("canary")
    (tmp_path / "other").write_text("canary")
    rules = {"deny": [f"{tool}({name}=*/keys/*)"]}
    opened = Host({}, rules=rules, permission_mode="bypassPermissions")
    async with opened as host, open_agent_tools(host, Folders(tmp_path)) as agent_tools:
        assert "deny rule" in (await agent_tools.toolbox.call(tool, arguments)).text
        others = {**arguments, ("path" if tool == "Grep" else "file_path"): "other"}
        assert "deny rule" not in (await agent_tools.toolbox.call(tool, others)).text


@pytest.mark.parametrize(
    "rule", ["command=rm *", 'command = "rm *"', "Command!=rm *", "cmd=rm *", "command: rm *"]
)
async def test_t805_a_command_with_the_name_of_its_argument_is_reported_and_applies(rule: str):
    book = Rulebook.of([("user", "file", PermissionRules(deny=(f"Bash({rule})",)))])
    (problem,) = book.problems
    assert problem.endswith(
        "it is the command itself that is written here: Bash(git push *); "
        "until it is corrected it applies to all calls of Bash"
    )
    call = Call(tool="Bash", command="rm x", arguments={"command": "rm x"})
    assert decide(call, book.about(call), "bypassPermissions").behaviour == "deny"
    with pytest.raises(ConfigError, match="the command itself"):
        Host({}, rules={"deny": [f"Bash({rule})"]})


OTHERS = ["command rm *", "commander x=1", "LD_PRELOAD=* *", "cmd", "cmd:*", "command:*"]


@pytest.mark.parametrize("rule", OTHERS)
def test_t805_other_commands_are_read_as_before(rule: str):
    assert Rulebook.of([("user", "file", PermissionRules(deny=(f"Bash({rule})",)))]).problems == ()
