"""T54: Command rules are compared argument by argument with the program that would be started."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config.policy import PolicySubject, PolicyVerdict, judge, loader_variables
from dragoman.config.policy_files import PolicyPart, gather

PROJECT = "/home/me/project"
NPX = "/usr/bin/npx"
REAL_NPX = "/usr/lib/node_modules/npm/bin/npx-cli.js"


def stdio(command: list[str], executable: str | None = None, **more: Any) -> PolicySubject:
    facts: dict[str, Any] = {"name": "box", "scope": "project", "project": PROJECT, **more}
    return PolicySubject(transport="stdio", command=tuple(command), executable=executable, **facts)


def asked(subject: PolicySubject, **lists: list[list[str]]) -> PolicyVerdict:
    rules = {key: [{"serverCommand": words} for words in value] for key, value in lists.items()}
    return judge(gather([PolicyPart(scope="enterprise", source="managed", **rules)]), subject)


def allows(words: list[str], subject: PolicySubject) -> bool:
    return asked(subject, allowed=[words]).allowed


def denies(words: list[str], subject: PolicySubject) -> bool:
    return not asked(subject, denied=[words]).allowed


RULE = ["npx", "-y", "@company/mcp-*"]


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["npx", "-y", "@company/mcp-files"], True),
        (["npx", "-y", "@company/mcp-"], True),
        (["npx", "-y", "@company/mcp-a b; id"], True),  # one argument stays one argument: there is no shell
        (["npx", "-y", "@other/mcp-files"], False),
        (["npx", "-y", "x@company/mcp-files"], False),
        (["npx", "-Y", "@company/mcp-files"], False),
        (["NPX", "-y", "@company/mcp-files"], False),
        # extra, missing, reordered, split and joined words
        (["npx", "-y", "@company/mcp-files", "--evil"], False),
        (["npx", "-y", "@company/mcp-files", ""], False),
        (["npx", "-y"], False),
        (["npx"], False),
        ([], False),
        (["npx", "@company/mcp-files", "-y"], False),
        (["-y", "npx", "@company/mcp-files"], False),
        (["npx -y @company/mcp-files"], False),
        (["npx", "-y @company/mcp-files"], False),
        (["npx", "", "-y", "@company/mcp-files"], False),
        (["npx ", "-y", "@company/mcp-files"], False),
        # other commands that run the same thing
        (["npx", "-c", "touch /tmp/x"], False),
        (["npx", "--call=touch /tmp/x", "@company/mcp-files"], False),
        (["npx", "-y", "--package=evil", "@company/mcp-files"], False),
        (["sh", "-c", "npx -y @company/mcp-files"], False),
        (["env", "npx", "-y", "@company/mcp-files"], False),
        (["env", "X=1", "npx", "-y", "@company/mcp-files"], False),
        (["python", "-c", "import os"], False),
        (["node", "-e", "1"], False),
        (["uvx", "--from", "git+https://evil.com/x", "x"], False),
        (["$(id)", "-y", "@company/mcp-files"], False),
        (["npx&calc", "-y", "@company/mcp-files"], False),
    ],
)
def test_t54_arguments_match_one_by_one(command: list[str], expected: bool):
    assert allows(RULE, stdio(command, NPX)) is expected


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(
    ("rule", "written", "executable", "expected"),
    [
        # as written, or as the program that would be started
        ("npx", "npx", NPX, True),
        ("npx", "npx", REAL_NPX, True),
        (NPX, "npx", NPX, True),
        (NPX, NPX, REAL_NPX, True),
        (REAL_NPX, NPX, REAL_NPX, True),
        ("/usr/bin/*", "npx", NPX, True),
        ("npx", NPX, NPX, False),
        ("npx", "/tmp/npx", "/tmp/npx", False),
        (NPX, "/tmp/npx", "/tmp/npx", False),
        (NPX, "npx", "/opt/npx", False),
        # a shadowing program inside the project
        ("npx", "npx", f"{PROJECT}/node_modules/.bin/npx", False),
        ("*", "npx", f"{PROJECT}/npx", True),  # the rule matches the complete path
        ("np*", "npx", f"{PROJECT}/npx", False),
        (f"{PROJECT}/bin/npx", "npx", f"{PROJECT}/bin/npx", True),
        ("npx", "npx", f"{PROJECT}-other/npx", True),
        ("npx", "npx", f"{PROJECT}/../project/npx", False),
        # relative: only through the program that would be started
        ("./npx", "./npx", f"{PROJECT}/npx", False),
        ("bin/npx", "bin/npx", f"{PROJECT}/bin/npx", False),
        ("../npx", "../npx", "/home/me/npx", False),
        ("npx", "./npx", f"{PROJECT}/npx", False),
        (f"{PROJECT}/npx", "./npx", f"{PROJECT}/npx", True),
        (NPX, "../../../usr/bin/npx", NPX, True),
        ("./npx", "./npx", None, False),
        # indirect paths
        ("/usr/bin/*", "/usr/bin/../../tmp/evil", "/tmp/evil", False),
        ("/usr/bin/*", "/usr/bin/./x", "/tmp/evil", False),
        ("/usr/bin/*", "/usr/bin//x", "/tmp/evil", False),
        ("/usr/bin/*", "//usr/bin/x", "/tmp/evil", False),
        ("/usr/bin/*", "/usr/bin/../bin/npx", NPX, True),
        # not found: only the written form can be compared
        ("npx", "npx", None, True),
        (NPX, "npx", None, False),
    ],
)
def test_t54_an_allow_rule_compares_the_program_that_would_be_started(
    rule: str, written: str, executable: str | None, expected: bool
):
    assert allows([rule, "x"], stdio([written, "x"], executable)) is expected


@pytest.mark.requirement("CFG-7")
def test_t54_a_symlink_inside_the_project_is_a_shadowing_program_too():
    shadow = stdio(["tool", "-c", "id"], "/bin/sh", found=f"{PROJECT}/bin/tool")
    verdict = asked(shadow, allowed=[["tool", "*", "*"], [f"{PROJECT}/bin/tool", "*", "*"]])
    assert not verdict.allowed
    assert "inside the project" in verdict.reason
    assert allows(["/bin/sh", "-c", "id"], shadow)


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(
    ("rule", "written", "executable", "found"),
    [
        ("npx", "npx", REAL_NPX, NPX),
        ("npx", NPX, REAL_NPX, NPX),
        ("npx", "./npx", f"{PROJECT}/npx", f"{PROJECT}/npx"),
        ("npx", "../../usr/bin/npx", NPX, NPX),
        ("npx", "link", NPX, "/usr/bin/link"),
        ("npx", "NPX", "/usr/bin/NPX", None),
        ("NPX", "npx", None, None),
        (NPX, "npx", REAL_NPX, NPX),
        (NPX, "npx", NPX, None),
        (NPX, "/usr/bin/../bin/npx", REAL_NPX, None),
        (NPX, "//usr/bin/npx", REAL_NPX, None),
        ("npx", "/opt/../npx/", None, None),
        (REAL_NPX, "npx", REAL_NPX, NPX),
        ("npx-cli.js", "npx", REAL_NPX, NPX),
        ("np*", "/x/npx", None, None),
        ("npx", "npx", f"{PROJECT}/npx", None),
        ("*", "anything", None, None),
    ],
)
def test_t54_no_spelling_of_the_program_avoids_a_deny(
    rule: str, written: str, executable: str | None, found: str | None
):
    assert denies([rule, "x"], stdio([written, "x"], executable, found=found))


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        (["npx", "x"], ["npx"]),
        (["npx", "x"], ["npx", "y"]),
        (["npx", "x"], ["npx", "x", "y"]),
        (["npx"], ["npxx"]),
        (["px"], ["/usr/bin/npx"]),
        (["bin/npx"], ["/usr/bin/npx"]),
    ],
)
def test_t54_a_deny_rule_matches_its_exact_arguments_only(rule: list[str], command: list[str]):
    assert not denies(rule, stdio(command, NPX if command[0] == "npx" else None))


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(
    "variable",
    ["LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP",
     "PYTHONHOME", "BASH_ENV", "ENV", "PERL5OPT", "RUBYOPT", "GIT_SSH_COMMAND", "PATH", "BASH_FUNC_npx%%"],
)  # fmt: skip
def test_t54_an_allowed_command_with_loader_variables_is_not_admitted(variable: str):
    bent = stdio(["npx", "x"], NPX, env_names=("TOKEN", variable))
    verdict = asked(bent, allowed=[["npx", "x"]])
    assert not verdict.allowed
    assert variable in verdict.reason
    assert "TOKEN" not in verdict.reason
    assert verdict.rule is not None
    assert allows(["npx", "x"], stdio(["npx", "x"], NPX, env_names=("TOKEN", variable), scope="enterprise"))


def test_t54_ordinary_variables_do_not_affect_an_allow_rule():
    ordinary = ("TOKEN", "LANG", "PYTHONUNBUFFERED", "NODE_ENV", "DEBUG", "GITHUB_TOKEN", "OPENAI_API_KEY")
    assert loader_variables(ordinary) == ()
    assert allows(["npx"], stdio(["npx"], NPX, env_names=ordinary))


NAMES = [
    ("box", "box", True, True),
    ("box", "Box", False, True),
    ("box", "box ", False, True),
    ("box", "boxx", False, False),
    ("box", "xbox", False, False),
    ("box", "b\u043ex", False, True),
    ("box", "box\u200b", False, True),
    ("b*x", "box", True, True),
    ("b*x", "b/../x", True, True),
    ("*", "anything & all", True, True),
    ("b.x", "box", False, False),
    ("b?x", "box", False, True),
    ("[b]ox", "box", False, False),
    ("test&calc", "test&calc", True, True),
]
"""The name in a rule, a server's name, and whether an allow rule and a deny rule apply: a deny rule
applies to other spellings, too."""


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(("rule", "name", "is_allowed", "is_denied"), NAMES)
def test_t54_allowed_names_are_compared_exactly_and_denied_names_in_any_spelling(
    rule: str, name: str, is_allowed: bool, is_denied: bool
):
    subject = PolicySubject(name=name, scope="user", transport="in-process")
    allow = gather([PolicyPart(scope="user", source="settings", allowed=[{"serverName": rule}])])
    deny = gather([PolicyPart(scope="user", source="settings", denied=[{"serverName": rule}])])
    assert judge(allow, subject).allowed is is_allowed
    assert judge(deny, subject).allowed is not is_denied


WORD = st.text(max_size=5) | st.sampled_from(["npx", "./npx", "*", "/usr/bin/npx", "..", "//", "${X}"])
PLACE = st.none() | WORD


@given(st.lists(WORD, max_size=4), st.lists(WORD, min_size=1, max_size=4), PLACE, PLACE, PLACE)
def test_t54_no_arguments_make_matching_fail_and_deny_matches_whatever_allow_matches(
    command: list[str], rule: list[str], executable: str | None, found: str | None, project: str | None
):
    subject = stdio(command, executable, found=found, project=project)
    if allows(rule, subject):
        assert denies(rule, subject)
