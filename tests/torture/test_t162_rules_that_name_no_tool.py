"""T162: a rule that cannot name a tool is reported, and as a deny rule it applies to the probably meant
tools."""

from pathlib import Path

import pytest

from dragoman import Host
from dragoman.catalog.naming import qualify
from dragoman.config.schema import PermissionRules
from dragoman.permissions.rules import BEHAVIOURS, BadRule, Behaviour, Call, Rulebook, parse
from tests.servers import stdio_server
from tests.torture import projects

APPLIES = "until it is corrected it applies to all calls of"
LISTS_AND_PARTS: list[tuple[str, str]] = [
    ("mcp__box, mcp__b", "mcp__box and mcp__b"),
    ("mcp__b,box", "mcp__b and mcp__box"),
    ("mcp__box__x, echo", "mcp__box__x and mcp__box__echo"),
    ("mcp__b; mcp__box", "mcp__b and mcp__box"),
    ("mcp__b mcp__box", "mcp__b and mcp__box"),
    ("mcp__b\nmcp__box", "mcp__b and mcp__box"),
    ("mcp__b|mcp__box", "mcp__b and mcp__box"),
    ("mcp__b\uff0cmcp__box", "mcp__b and mcp__box"),
    ("mcp__b(x=1), mcp__box(y=2)", "mcp__b and mcp__box"),
    ("!mcp__box", "mcp__box"),
    ("-mcp__box", "mcp__box"),
    ("'mcp__box'", "mcp__box"),
    ("^mcp__box$", "mcp__box"),
    ("server mcp__box", "server and mcp__box"),
    ("tool:mcp__box", "tool and mcp__box"),
    ("mcp__box:echo", "mcp__box__echo and mcp__box:echo"),
    ("mcp_box__echo", "mcp__box__echo and mcp_box__echo"),
    ("mcp-box", "mcp__box and mcp-box"),
    ("mcp:box:echo", "mcp__box__echo and mcp:box:echo"),
    ("mcp box", "mcp__box and mcp box"),
    ("\uff4d\uff43\uff50_box", "mcp__box and mcp_box"),
    ("mcp__box__.*", "mcp__box__*"),
    ("mcp__.*", "mcp__*"),
    (".*", "*"),
    ("mcp__box__[ef]cho", "mcp__box__* and mcp__box__[ef]cho"),
    ("mcp__box__ech?", "mcp__box__ech* and mcp__box__ech?"),
    ("mcp__${NAME}", "mcp__* and mcp__${NAME}"),
]
ECHO = Call(tool=qualify("box", "echo"), server="box", wire_name="echo")


def denying(text: str, scope: str = "user") -> Rulebook:
    return Rulebook.of([(scope, "file.json", PermissionRules(deny=(text,)))])


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize(("text", "names"), LISTS_AND_PARTS, ids=ascii)
def test_t162_a_deny_rule_that_names_no_tool_is_reported_and_applies_to_the_probable_meaning(
    text: str, names: str
):
    book = denying(text)
    [problem] = book.problems
    assert problem.startswith("file.json: deny rule ")
    assert problem.endswith(f"; {APPLIES} {names}")
    assert any(rule.is_about(ECHO) and rule.applies(ECHO) for rule in book.rules)


@pytest.mark.parametrize(("text", "names"), LISTS_AND_PARTS, ids=ascii)
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_t162_the_problem_is_reported_for_every_kind_of_rule(behaviour: Behaviour, text: str, names: str):
    with pytest.raises(BadRule):
        parse(text, behaviour, scope="user", source="file.json")


RULES_AND_HINTS: list[tuple[str, str]] = [
    ("mcp__box:echo", "no name of a tool has the character : in it (did you mean mcp__box__echo?)"),
    ("mcp_box", "the names of servers' tools begin with mcp__ (did you mean mcp__box?)"),
    ("mcp__box__.*", "* alone matches any characters (did you mean mcp__box__*?)"),
    (
        "mcp__a, mcp__b",
        'a rule names one tool or server (write each as a text of its own: "mcp__a", "mcp__b")',
    ),
    (
        "Bash git push *",
        "names of servers' tools begin with mcp__, others have letters, digits, _ and - only "
        "(did you mean Bash(git push *)?)",
    ),
    (
        "Bash(git push), Bash(rm *)",
        "there are several rules in one text (write each as a text of its own)",
    ),
]


@pytest.mark.parametrize(("text", "reason"), RULES_AND_HINTS, ids=ascii)
def test_t162_the_correct_spelling_is_suggested(text: str, reason: str):
    with pytest.raises(BadRule) as caught:
        parse(text, "deny", scope="user", source="file.json")
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    "text", ["Bash git push", "Bash: git push", "Bash(git push), Bash(rm *)", "bash = x"]
)
def test_t162_a_shell_rule_without_parentheses_applies_to_every_command(text: str):
    book = denying(text)
    assert [(rule.subject.text.lower(), rule.shell) for rule in book.rules] == [("bash", None)]
    assert len(book.problems) == 1


def test_t162_a_managed_rule_that_may_mean_all_other_tools_applies_to_everything():
    assert [rule.subject.text for rule in denying("!mcp__box", "enterprise").rules] == ["*"]


UNREPORTED_RULES = [
    "mcp__box echo",
    "mcp__box__ echo",
    "mcp__ box",
    "mcp__box __echo",
    "box__echo",
    "mcp__box.echo",
]
UNREPORTED_RULES += ["mcp__box/echo", "mcp__box__ec.*", "MCP__BOX", "mcp__box\t"]


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize("text", UNREPORTED_RULES, ids=ascii)
def test_t162_a_deny_rule_that_may_name_another_server_also_applies_to_its_other_meanings(text: str):
    book = denying(text)
    assert book.problems == ()
    assert book.rules[0].is_about(ECHO)


VALID_RULES = [
    "mcp__claude.ai Google Drive",
    "mcp__Bob's R&D server",
    "mcp__@scope/server__x",
    "mcp__c#__x!",
    "mcp_*",
]
VALID_RULES += ["mcp*", "*", "*__echo", "read_result", "mcpserver", "mcp__db__admin.*", "Bash(echo (x), (y))"]


@pytest.mark.parametrize("text", VALID_RULES)
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_t162_a_possible_name_is_not_a_problem(text: str, behaviour: Behaviour):
    rules = PermissionRules(**{behaviour: (text,)})
    assert Rulebook.of([("user", "file.json", rules)]).problems == ()


async def test_t162_the_host_reports_the_rule_and_refuses_the_call(home: Path):
    file = projects.user(home, {"permissions": {"deny": ["mcp__b, mcp__box"]}})
    async with Host.configured(
        servers={"box": stdio_server("well_behaved.py")}, permission_mode="bypassPermissions"
    ) as host:
        await host.ready(timeout=30)
        assert host.problems == (
            f"{file}: deny rule 'mcp__b, mcp__box': a rule names one tool or server (write each as a text of "
            f'its own: "mcp__b", "mcp__box"); {APPLIES} mcp__b and mcp__box',
        )
        assert (await host.call("mcp__box__echo", {"message": "x"})).is_error


CONDITIONS = [
    "message == x",
    "message='x'",
    "message=\u201cx\u201d",
    "message=`x`",
    "message~=x",
    "message^=x",
]
CONDITIONS += ["readOnly=true", "readOnlyHint=false", "destructive != true", "message=~x", "message*=x"]


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize("condition", CONDITIONS, ids=ascii)
def test_t162_a_deny_rule_with_conditions_in_unknown_syntax_applies_to_all_calls(condition: str):
    book = denying(f"mcp__box__echo({condition})")
    assert book.problems[0].endswith(f"; {APPLIES} mcp__box__echo")
    assert [rule.is_bare for rule in book.rules] == [True]


@pytest.mark.parametrize("command", ["'rm *'", '"rm *"', "`rm *`", "'rm -rf x'"])
def test_t162_a_quoted_command_is_reported(command: str):
    book = denying(f"Bash({command})")
    assert book.problems[0].endswith(f"; {APPLIES} Bash")


@pytest.mark.parametrize(
    "text", ["Bash('my program' x)", "Bash(echo 'a b')", "Bash('ls')", "mcp__a(x=\"'b'\")"]
)
def test_t162_valid_quotes_are_not_a_problem(text: str):
    assert denying(text).problems == ()


@pytest.mark.parametrize("value", ["'b'", "=b", "~b", "`b`", "\u201cb\u201d", "'b*'"])
def test_t162_a_quoted_value_is_printed_so_that_it_can_be_parsed_again(value: str):
    first = parse(f'mcp__a(x="{value}")', "deny", scope="user", source="file.json")
    again = parse(first.spelled(), "deny", scope="user", source="file.json")
    assert again.conditions == first.conditions
