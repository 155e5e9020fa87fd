"""T163: commands of git that run programs, and commands of git that have programs of their own."""

import pytest

from dragoman.config.schema import PermissionRules
from dragoman.permissions.decide import decide
from dragoman.permissions.rules import Call, Rulebook

pytestmark = pytest.mark.requirement("PRM-4")


def decided(command: str, allow: str = "*", deny: tuple[str, ...] = ()) -> str:
    book = Rulebook.of([("user", "f", PermissionRules(allow=(f"Bash({allow})",), deny=deny))])
    call = Call(tool="Bash", arguments={"command": command}, command=command)
    return decide(call, book.about(call), "default").behaviour


RUN = (
    "git bisect view ./x",
    "git bisect view gitx",
    "git bisect visualize tig",
    "git -C . bisect view",
    "git-bisect view ./x",
    "git-bisect run ./x",
    "git-submodule foreach ./x",
    "git-filter-branch --tree-filter ./x",
    "git-difftool -x ./x",
    "git-rebase -x ./x",
    "git-grep -O./x y",
    "git-config alias.x '!./x'",
    "/usr/lib/git-core/git-bisect run ./x",
)


@pytest.mark.parametrize("command", RUN)
def test_t163_a_git_command_that_runs_programs_is_not_covered_by_a_wildcard(command: str):
    assert decided(command, f"{command.partition(' ')[0]} *") == "ask"
    assert decided(command, f"{command.rpartition(' ')[0]} *") == "ask"
    assert decided(command, deny=("Bash(rm *)",)) == "ask"


@pytest.mark.parametrize("command", ["git bisect start", "git bisect good a", "git-log -1", "git-status"])
def test_t163_other_commands_are_covered_by_the_wildcard(command: str):
    assert decided(command, f"{command.partition(' ')[0]}:*", ("Bash(rm *)",)) == "allow"


PUSHES = (
    "git-push",
    "git-push origin main",
    "/usr/lib/git-core/git-push origin",
    "GIT-PUSH origin",
    "git-push.exe origin",
    "env git-push origin",
    "sh -c 'git-push origin'",
    "xargs git-push",
    "git-push --force origin main",
    "git bisect view push origin",
    "git-bisect view push",
    "git bisect view git push",
    "git submodule foreach git-push",
)


@pytest.mark.parametrize("command", PUSHES)
def test_t163_a_deny_rule_for_a_git_command_applies_to_its_own_program(command: str):
    assert decided(command, deny=("Bash(git push *)",)) == "deny"
    assert decided(command, deny=("Bash(git push:*)",)) == "deny"


@pytest.mark.parametrize("command", ["git push origin", "git -C . push", "git-push x", "env git push x"])
def test_t163_a_deny_rule_for_the_program_applies_to_the_git_command(command: str):
    assert decided(command, deny=("Bash(git-push *)",)) == "deny"


@pytest.mark.parametrize(
    "command", ["git-log", "git-pull origin", "git-pushed", "git log push", "mygit-push x"]
)
def test_t163_other_programs_are_not_denied(command: str):
    assert decided(command, deny=("Bash(git push *)",)) == "allow"
