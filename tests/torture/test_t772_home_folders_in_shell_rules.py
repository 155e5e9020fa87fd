"""T772: an allow rule for a program in the person's home folder, `~/bin/x`, does not apply to a folder of a
repository named `~`; and a rule with `~` and `*`, which would allow no command, is refused."""

import pytest

from dragoman.permissions.conditions import BadRule
from dragoman.permissions.rules import parse
from tests.unit.permissions.test_shell import judged

pytestmark = pytest.mark.requirement("PRM-4")
LITERAL = ["'~/bin/x'", '"~/bin/x"', "\\~/bin/x", "~''/bin/x", "'~'/bin/x", "./~/bin/x"]


@pytest.mark.parametrize("command", LITERAL)
def test_t772_a_folder_named_tilde_is_not_allowed(command: str):
    assert judged(command, allow=["~/bin/x"]) == "ask"
    assert judged(f"{command} a", allow=["~/bin/x a"]) == "ask"
    assert judged(f"tool --out={command}", allow=["tool --out=~/bin/x"]) == "ask"


def test_t772_exactly_the_command_of_the_rule_is_allowed():
    assert judged("~/bin/x a", allow=["~/bin/x a"]) == "allow"


@pytest.mark.parametrize("quoted", ["'~/bin/x' *", '"~/bin/x" *'])
def test_t772_a_quoted_rule_matches_the_folder_named_tilde(quoted: str):
    assert judged("'~/bin/x' a", allow=[f"{quoted}"]) == "allow"
    assert judged("~/bin/x a", allow=[f"{quoted}"]) == "ask"


@pytest.mark.parametrize(
    "pattern", ["~/bin/x *", "~/bin/x:*", "~/bin/*", "ls ~/notes/*", "tool --out=~/x *", "~me/x *"]
)
def test_t772_a_rule_that_would_allow_no_command_is_refused(pattern: str):
    with pytest.raises(BadRule, match="write the path of the home folder"):
        parse(f"Bash({pattern})", "allow", scope="user", source="f")


@pytest.mark.parametrize("pattern", ["git log HEAD~1 *", "git diff HEAD~*"])
def test_t772_a_tilde_inside_a_word_is_literal(pattern: str):
    parse(f"Bash({pattern})", "allow", scope="user", source="f")


@pytest.mark.parametrize("command", ["~/bin/x a", "'~/bin/x' a"])
def test_t772_a_deny_rule_matches_both_folders(command: str):
    assert judged(command, allow=["*"], deny=["~/bin/x *"]) in ("ask", "deny")
