"""T733: an allow rule for a program whose only purpose is to start another does not allow the other one,
and a deny rule for the other one applies; other programs than those of T95 and T138."""

import pytest

from dragoman.config.schema import PermissionRules
from dragoman.permissions.decide import decide
from dragoman.permissions.rules import Call, Rulebook

pytestmark = pytest.mark.requirement("PRM-4")

COMMANDS = [
    "catchsegv git push",
    "cgexec -g cpu:x git push",
    "s6-setuidgid x git push",
    "setuidgid x git push",
    "envdir x git push",
    "softlimit -m 1 git push",
    "trickle -d 1 git push",
    "nocache git push",
    "run-one git push",
    "sshpass -p x git push",
    "tsp git push",
    "daemonize /usr/bin/git push",
    "logsave x git push",
    "mispipe 'git push' cat",
    "pee 'git push'",
    "envchain x git push",
    "coreutils --coreutils-prog=nice git push",
    "heaptrack git push",
    "socat - EXEC:'git push'",
]


def decided(command: str, *, allow: str, deny: tuple[str, ...] = ()) -> str:
    book = Rulebook.of([("user", "f", PermissionRules(allow=(f"Bash({allow})",), deny=deny))])
    call = Call(tool="Bash", arguments={"command": command}, command=command)
    return decide(call, book.about(call), "default").behaviour


@pytest.mark.parametrize("command", COMMANDS)
def test_t733_the_started_program_is_not_allowed(command: str):
    assert decided(command, allow=f"{command.split()[0]} *") == "ask"
    assert decided(command, allow="*", deny=("Bash(git push *)", "Bash(git push)")) != "allow"
