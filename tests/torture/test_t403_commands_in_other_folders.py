"""T403: a session permission for a command does not apply to the same command in another folder."""

from pathlib import Path

import pytest

from dragoman import Host, PermissionAnswer
from dragoman.agent.builtin.shell import Shell
from dragoman.agent.builtin.workspace import Workspace
from dragoman.cli.terminal_interaction import show
from dragoman.testing import ScriptedUser
from dragoman.transports.orphans import watchdog
from dragoman.tui.permission_question import question_text

pytestmark = pytest.mark.requirement("PRM-1")


async def test_t403_the_same_command_in_another_folder_is_asked_about(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    work = (home / "work").resolve()
    for folder in (work, work / "vendor"):
        folder.mkdir(exist_ok=True)
        (folder / "build.sh").write_text(f"echo built in {folder.name}\n")
    user = ScriptedUser(PermissionAnswer(True, for_session=True))
    shell = Shell(Workspace(work), watchdog)
    told: list[str] = []
    async with Host.configured(cwd=work, interaction=user) as host:
        toolbox = host.toolbox(shell.tools())
        build = "sh build.sh"
        for command in (build, build, "cd vendor", build, build, "cd ..", build):
            told.append((await toolbox.call("Bash", {"command": command})).text)
        await shell.close()
    here, there, moved = "built in work", "built in vendor", "(no output)"
    assert told == [here, here, moved, there, there, moved, here]
    vendor = str(work / "vendor")
    asked = [(question.arguments["command"], question.folder) for question in user.asked]
    assert asked == [(build, ""), ("cd vendor", ""), (build, vendor), ("cd ..", vendor)]
    # A rule would apply in every folder.
    assert (user.asked[0].rule, user.asked[2].rule) == (f"Bash({build})", "")
    show(user.asked[2])
    assert f"in the folder {vendor}" in capsys.readouterr().err.replace("\n    ", "")
    assert f"in the folder {vendor}" in question_text(user.asked[2]).plain
