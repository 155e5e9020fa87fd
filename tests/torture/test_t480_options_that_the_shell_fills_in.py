"""T480: an option that runs a program is recognised although the shell expands a part of it, or all of it:
a variable, or a file name pattern."""

import shutil
from pathlib import Path

import pytest

from dragoman import Host
from dragoman.agent.builtin.shell import Shell
from dragoman.agent.builtin.workspace import Workspace
from dragoman.config.schema import PermissionRules
from dragoman.permissions.decide import decide
from dragoman.permissions.modes import PermissionMode
from dragoman.permissions.rules import Call, Rulebook
from dragoman.transports.orphans import watchdog

pytestmark = pytest.mark.requirement("PRM-4")


def decided(command: str, rules: PermissionRules, mode: PermissionMode = "default") -> str:
    call = Call(tool="Bash", arguments={"command": command}, command=command)
    return decide(call, Rulebook.of([("user", "f", rules)]).about(call), mode).behaviour


PARTS = [
    "find . -ex${x}ec rm {} +",
    "find . -$x rm {} +",
    "find . -exec$x rm {} +",
    "find . -exe? rm {} +",
    "find . -ok${x}dir rm ';'",
    "git submodule fore${x}ach 'rm a'",
    "git bisect r${x}un rm a",
    "git bisect v${x}iew rm a",
    "git fetch e${x}xt::'rm a'",
    "printf -${x}v 'a[$(rm a)]' b",
    "ssh -${x}F ./config host",
    "sort -$x a",
    "tar --to-comm*d xf a.tar",
]
FILES = [
    "tar cf a.tar *",
    "tar cf a.tar ''*",
    "tar cf a.tar ?-*",
    "tar cf a.tar [-a]*",
    "tar cf a.tar {*,a}",
    "tar cf a.tar {$x,a}",
    "tar cf a.tar */a",
    "rsync -a * /backup",
    "zip a.zip *",
    "sort *",
    "rg word *",
    "find *",
    "git fetch *",
    "wget *",
]


@pytest.mark.parametrize("command", [*PARTS, *FILES])
def test_t480_words_that_may_expand_to_such_an_option_need_permission(command: str):
    program = command.partition(" ")[0]
    assert decided(command, PermissionRules(allow=(f"Bash({program} *)",))) == "ask"
    assert decided(command, PermissionRules(deny=("Bash(rm *)",)), "bypassPermissions") != "allow"


@pytest.mark.parametrize(
    "command",
    ["tar cf a.tar ./*", "tar cf a.tar src/*", "tar xf ~/a.tar", "tar xf a.tar -C ~",
     "tar --exclude=*.o -cf a b", "find ~ -name a", "find . -name '*.py'", "git add *", "git add *.py",
     "git diff -- *",
     "git log -n$x", "git add running/$x", "grep word *", "printf '%s' $((1+2))", "ssh host$x"],
)  # fmt: skip
def test_t480_other_words_are_covered_by_the_allow_rule(command: str):
    program = command.partition(" ")[0]
    assert decided(command, PermissionRules(allow=(f"Bash({program} *)",))) == "allow"


@pytest.mark.skipif(shutil.which("tar") is None, reason="there is no tar")
async def test_t480_file_names_of_a_repository_run_nothing(home: Path):
    work = (home / "work").resolve()
    work.mkdir(exist_ok=True)
    (work / "x.sh").write_text("echo > ran\n")
    for name in ("--checkpoint=1", "--checkpoint-action=exec=sh x.sh"):
        (work / name).touch()
    shell = Shell(Workspace(work), watchdog)
    async with Host({}, rules={"allow": ["Bash(tar *)"]}) as host:
        toolbox = host.toolbox(shell.tools())
        told = await toolbox.call("Bash", {"command": "tar cf ../a.tar *"})
        assert told.is_error
        told = await toolbox.call("Bash", {"command": "tar cf ../a.tar ./*"})
        assert not told.is_error
        await shell.close()
    assert not (work / "ran").exists()
