"""T138: an allow rule for a program does not allow an option by which it runs another program; other
programs than in T95."""

import pytest

from dragoman.config.schema import PermissionRules
from dragoman.permissions.decide import decide
from dragoman.permissions.rules import Call, Rulebook

pytestmark = pytest.mark.requirement("PRM-4")


def decided(command: str, allow: str, deny: tuple[str, ...] = ()) -> str:
    book = Rulebook.of([("user", "f", PermissionRules(allow=(f"Bash({allow})",), deny=deny))])
    call = Call(tool="Bash", arguments={"command": command}, command=command)
    return decide(call, book.about(call), "default").behaviour


RUN = (
    "npm run build --script-shell=./x",
    "npm run build --script-sh ./x",
    "npm run build --node-options='--require ./x'",
    "npm run build --userconfig=x",
    "npm run build {--script-shell=./x,}",
    "pnpm run build --script-shell ./x",
    "go test -exec ./x ./...",
    "go build -toolexec=./x",
    "go vet --vettool=./x",
    "cargo build --config build.rustc-wrapper='\"./x\"'",
    "svn diff --diff-cmd ./x",
    "svn update --config-option=config:tunnels:ssh=./x",
    "hg log --config alias.log='!./x'",
    "hg pull -e ./x",
    "install -s --strip-program=./x a b",
    "sdiff --diff-program=./x a b",
    "diff3 --diff-prog ./x a b c",
    "cpio --rsh-command=./x -i -F h:a",
    "tcpdump -z ./x -w a",
)


@pytest.mark.parametrize("command", RUN)
def test_t138_an_option_that_names_a_program_needs_permission(command: str):
    program = command.partition(" ")[0]
    assert decided(command, f"{program} *") == "ask"
    assert decided(command, program, ("Bash(rm *)",)) == "ask"


@pytest.mark.parametrize(
    "command",
    ["npm run build --silent", "npm test --workspace=a", "go test -run X ./...", "cargo build --release",
     "svn diff -r 5", "hg log -l 5", "install -m 644 a b", "tcpdump -r a"],
)  # fmt: skip
def test_t138_other_options_are_covered_by_the_allow_rule(command: str):
    assert decided(command, f"{command.partition(' ')[0]} *") == "allow"
