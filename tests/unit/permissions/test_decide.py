"""Who decides on a call: rules, hooks, grants, modes, in this order of strictness."""

import re
import time
import timeit
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.catalog.annotations import Hints
from dragoman.catalog.naming import LIMIT, qualify
from dragoman.hooks.verdicts import HookDecision
from dragoman.names import plain
from dragoman.permissions.decide import Verdict, decide, is_heavy, rule_for, server_rule_for
from dragoman.permissions.modes import MODES, PermissionMode
from dragoman.permissions.rules import Behaviour, Call, Rule, Rulebook, parse

DIGEST = "0123456789abcdef" * 4
OTHER = "f" * 64
NO_HINTS = Hints()
READS = Hints(read_only=True, destructive=False, idempotent=True)
SCOPES = {"managed": "enterprise", "user": "user", "project": "project", "local": "local"}


def rules(text: str) -> list[Rule]:
    """`allow mcp__gh + managed deny mcp__gh__x`; without a word before it, a rule is the user's."""
    made: list[Rule] = []
    for part in filter(None, text.split(" + ")):
        scope, found, rest = part.partition(" ")
        if scope not in SCOPES:
            scope, found, rest = "user", " ", part
        behaviour, _, written = rest.partition(" ")
        assert found
        assert behaviour in ("allow", "ask", "deny")
        made.append(parse(written, behaviour, scope=SCOPES[scope], source=f"{scope}.json"))
    return made


def call(server: str, tool: str, hints: Hints = NO_HINTS, digest: str = DIGEST, **arguments: Any) -> Call:
    return Call(
        tool=qualify(server, tool),
        server=server,
        wire_name=tool,
        arguments=arguments,
        hints=hints,
        digest=digest,
    )


def shell(command: str) -> Call:
    return Call(tool="Bash", arguments={"command": command}, command=command, digest=DIGEST)


GET = call("gh", "get_issue", READS, repo="org/a")
MAKE = call("gh", "create_issue", repo="org/a")
DROP = call("gh", "delete_repo", Hints(is_declared_destructive=True), repo="org/a")
PAGE = Call(tool="fetch_page", digest=DIGEST)
OWN = Call(tool="find_tools", is_own=True)
LONG = call("gh", "create_" + "x" * 80)
CHANGED = call("gh", "create_issue", digest=OTHER)

# For each mode one letter, in the order default, bypassPermissions, auto, dontAsk, plan.
#   A allowed, Q a person is asked, C a classifier is asked, D denied; capital: the named rule decided,
#   small: no rule did.
TABLE = """
rules                                             call      default-bypass-auto-dontAsk-plan  by
-                                                 MAKE      q a c d d   -
-                                                 GET       q a c d q   -
-                                                 DROP      q a c d d   -
-                                                 PAGE      q a c d d   -
-                                                 OWN       a a a a a   -
allow mcp__gh                                     MAKE      A A A A d   mcp__gh
allow mcp__gh                                     GET       A A A A A   mcp__gh
allow mcp__gh__*                                  DROP      A A A A d   mcp__gh__*
allow mcp__gh__create_issue                       MAKE      A A A A d   mcp__gh__create_issue
allow mcp__gh__create_issue                       GET       q a c d q   -
allow mcp__gh__create_*                           MAKE      A A A A d   mcp__gh__create_*
allow mcp__*__create_*                            MAKE      A A A A d   mcp__*__create_*
allow mcp__*                                      MAKE      A A A A d   mcp__*
allow mcp__*                                      PAGE      q a c d d   -
allow *                                           PAGE      A A A A d   *
allow fetch_page                                  PAGE      A A A A d   fetch_page
allow fetch_*                                     PAGE      A A A A d   fetch_*
allow mcp__gitlab                                 MAKE      q a c d d   -
allow mcp__g                                      MAKE      q a c d d   -
allow mcp__GH                                     MAKE      q a c d d   -
allow mcp__gh                                     LONG      A A A A d   mcp__gh
ask mcp__gh                                       MAKE      Q Q Q D d   mcp__gh
ask mcp__gh                                       GET       Q Q Q D Q   mcp__gh
ask mcp__GH__Create_Issue                         MAKE      Q Q Q D d   mcp__GH__Create_Issue
ask mcp__gh + allow mcp__gh                       GET       Q Q Q D Q   mcp__gh
allow mcp__gh + ask mcp__gh__get_*                GET       Q Q Q D Q   mcp__gh__get_*
allow mcp__gh + ask mcp__gh__get_*                MAKE      A A A A d   mcp__gh
ask *                                             PAGE      Q Q Q D d   *
ask *                                             OWN       a a a a a   -
ask find_tools                                    OWN       Q Q Q D Q   find_tools
ask Find_*                                        OWN       Q Q Q D Q   Find_*
managed ask find_tools                            OWN       Q Q Q D Q   find_tools
deny mcp__gh                                      GET       D D D D D   mcp__gh
deny mcp__gh__*                                   MAKE      D D D D D   mcp__gh__*
deny mcp__*__delete_*                             DROP      D D D D D   mcp__*__delete_*
deny mcp__*__delete_*                             GET       q a c d q   -
deny *                                            OWN       D D D D D   *
deny find_tools                                   OWN       D D D D D   find_tools
deny mcp__GH__CREATE_ISSUE                        MAKE      D D D D D   mcp__GH__CREATE_ISSUE
deny mcp__gh + allow mcp__gh__get_issue           GET       D D D D D   mcp__gh
deny mcp__gh + ask mcp__gh                        GET       D D D D D   mcp__gh
deny mcp__gh + managed allow mcp__gh              GET       D D D D D   mcp__gh
deny mcp__gh + managed deny mcp__gh__get_*        GET       D D D D D   mcp__gh__get_*
project deny mcp__gh__get_* + allow mcp__gh       GET       D D D D D   mcp__gh__get_*
local deny mcp__gh__get_* + allow mcp__gh         GET       D D D D D   mcp__gh__get_*
managed allow mcp__gh                             GET       A A A A A   mcp__gh
managed allow mcp__gh                             MAKE      A A A A d   mcp__gh
managed allow mcp__gh + ask mcp__gh__get_issue    GET       A A A A A   mcp__gh
managed allow mcp__gh + managed ask mcp__gh__get_issue GET  Q Q Q D Q   mcp__gh__get_issue
managed ask mcp__gh__get_issue + allow mcp__gh    GET       Q Q Q D Q   mcp__gh__get_issue
managed ask mcp__gh + deny mcp__gh__get_*         GET       D D D D D   mcp__gh__get_*
allow mcp__gh(readOnly)                           GET       A A A A A   mcp__gh(readOnly)
allow mcp__gh(readOnly)                           MAKE      q a c d d   -
allow mcp__gh(!destructive)                       GET       A A A A A   mcp__gh(!destructive)
allow mcp__gh(!destructive)                       MAKE      q a c d d   -
allow mcp__gh + ask mcp__gh(destructive)          DROP      Q Q Q D d   mcp__gh(destructive)
allow mcp__gh + ask mcp__gh(destructive)          GET       A A A A A   mcp__gh
allow mcp__gh + deny mcp__gh(!readOnly)           MAKE      D D D D D   mcp__gh(!readOnly)
allow mcp__gh + deny mcp__gh(!readOnly)           GET       A A A A A   mcp__gh
allow mcp__gh(idempotent, readOnly)               GET       A A A A A   mcp__gh(idempotent, readOnly)
allow mcp__gh(!openWorld)                         GET       q a c d q   -
allow mcp__gh(repo=org/*)                         GET       A A A A A   mcp__gh(repo=org/*)
allow mcp__gh(repo=other/*)                       GET       q a c d q   -
allow mcp__gh(repo=org/*, readOnly)               GET       A A A A A   mcp__gh(repo=org/*, readOnly)
allow mcp__gh(repo=org/*, readOnly)               MAKE      q a c d d   -
allow mcp__gh + ask mcp__gh(repo!=org/*)          GET       A A A A A   mcp__gh
allow mcp__gh + ask mcp__gh(repo!=other/*)        GET       Q Q Q D Q   mcp__gh(repo!=other/*)
allow mcp__gh + deny mcp__gh(repo=ORG/*)          GET       D D D D D   mcp__gh(repo=ORG/*)
allow mcp__gh + deny mcp__gh(owner!=me)           GET       D D D D D   mcp__gh(owner!=me)
allow mcp__gh(owner!=me)                          GET       q a c d q   -
allow mcp__gh__create_issue@{digest}              MAKE      A A A A d   mcp__gh__create_issue@{digest}
allow mcp__gh__create_issue@{digest}              CHANGED   q a c d d   -
deny mcp__gh__create_issue@{digest}               CHANGED   D D D D D   mcp__gh__create_issue@{digest}
ask mcp__gh__create_issue@{digest}                CHANGED   Q Q Q D d   mcp__gh__create_issue@{digest}
managed deny mcp__*                               GET       D D D D D   mcp__*
managed deny mcp__*                               PAGE      q a c d d   -
"""

ROWS = [
    pytest.param(
        ("" if written == "-" else written.replace("{digest}", DIGEST[:32])),
        subject,
        mode,
        letter,
        None if by == "-" or letter.islower() else by.replace("{digest}", DIGEST[:32]),
        id=f"{written}: {subject} in {mode}: {letter}",
    )
    for line in TABLE.strip().splitlines()[1:]
    for written, subject, letters, by in [
        re.fullmatch(r"(.+?) +([A-Z]+) +((?:\w ){4}\w) +(.+)", line).groups()  # type: ignore[union-attr]
    ]
    for mode, letter in zip(MODES, letters.split(), strict=True)
]
CALLS = {"GET": GET, "MAKE": MAKE, "DROP": DROP, "PAGE": PAGE, "OWN": OWN, "LONG": LONG, "CHANGED": CHANGED}


def test_the_table_has_all_combinations():
    assert len(ROWS) >= 300


def letter_of(verdict: Verdict) -> str:
    if verdict.behaviour == "ask":
        letter = "c" if verdict.asks == "classifier" else "q"
    else:
        letter = verdict.behaviour[0]
    return letter if verdict.rule is None else letter.upper()


@pytest.mark.requirement("PRM-1", "PRM-2")
@pytest.mark.parametrize(("written", "subject", "mode", "letter", "by"), ROWS)
def test_which_rule_or_mode_decides(
    written: str, subject: str, mode: PermissionMode, letter: str, by: str | None
):
    verdict = decide(CALLS[subject], rules(written), mode)

    assert letter_of(verdict) == letter
    assert (verdict.rule and verdict.rule.text) == by
    assert verdict.reason
    assert verdict.rule is None or verdict.rule.description in verdict.reason


SAYS: dict[str, HookDecision] = {
    behaviour: HookDecision(behaviour, "because", "access_control.py")
    for behaviour in ("allow", "ask", "deny")  # type: ignore[misc]
}


@pytest.mark.parametrize(
    ("written", "says", "granted", "letters"),
    [
        ("", "allow", "no", "aaaad"),
        ("", "ask", "no", "qqqdd"),
        ("", "deny", "no", "ddddd"),
        ("", None, "yes", "aaaad"),
        ("", None, "lapsed", "qacdd"),
        ("", "ask", "yes", "qqqdd"),
        ("", "deny", "yes", "ddddd"),
        ("", "allow", "lapsed", "aaaad"),
        ("allow mcp__gh", "ask", "no", "qqqdd"),
        ("allow mcp__gh", "deny", "no", "ddddd"),
        ("ask mcp__gh", "allow", "no", "QQQDd"),
        ("ask mcp__gh", None, "yes", "QQQDd"),
        ("deny mcp__gh", "allow", "yes", "DDDDD"),
        ("managed ask mcp__gh", "allow", "yes", "QQQDd"),
        ("managed allow mcp__gh", "ask", "no", "AAAAd"),
        ("managed allow mcp__gh", "deny", "no", "ddddd"),
        ("allow mcp__gh(readOnly)", None, "yes", "aaaad"),
    ],
)
@pytest.mark.parametrize("number", range(5))
def test_hooks_and_grants_come_after_stricter_rules(
    written: str, says: str | None, granted: Any, letters: str, number: int
):
    word = None if says is None else SAYS[says]
    verdict = decide(MAKE, rules(written), MODES[number], granted=granted, hook_decision=word)

    assert letter_of(verdict) == letters[number]
    if verdict.rule is None and word is not None and letters[number] == says[0]:  # type: ignore[index]
        assert number == 4 or ("access_control.py" in verdict.reason and "because" in verdict.reason)


ENV_CASES = [
    # rules, command → behaviour in default and in bypassPermissions
    ("", "git status", "qa"),
    ("allow Bash", "git status; rm x > y", "AA"),
    ("allow Bash(*)", "$X y", "AA"),
    ("allow *", "git status", "AA"),
    ("allow Bash(git status)", "git status", "AA"),
    ("allow Bash(git status)", "git   'status'", "AA"),
    ("allow Bash(git status)", "git status x", "qa"),
    ("allow Bash(git *)", "git status && git log", "AA"),
    ("allow Bash(git *)", "git status && ls", "qa"),
    ("allow Bash(git *) + allow Bash(ls)", "git status && ls", "AA"),
    ("allow Bash(git *) + ask Bash(git push *)", "git status; git push origin", "QQ"),
    ("allow Bash(git *) + deny Bash(git push *)", "git status; git push origin", "DD"),
    ("allow Bash(git *) + deny Bash(git push *)", "git status; /usr/bin/git push", "DD"),
    ("allow Bash(git *) + deny Bash(git push *)", "git $WHAT origin", "qq"),
    ("allow Bash + deny Bash(git push *)", "git $WHAT origin", "qq"),
    ("allow Bash(*) + deny Bash(git push *)", "git $WHAT origin", "qq"),
    ("deny Bash(rm *)", "$(echo rm) -rf x", "qq"),
    ("allow Bash($(echo rm\\) x) + deny Bash(rm *)", "ls", "qa"),
    ("managed allow Bash(git *) + ask Bash(git push *)", "git push", "AA"),
    ("managed allow Bash(git *) + ask Bash(ls)", "git push; ls", "QQ"),
    ("allow Bash(git *) + managed deny Bash", "git push", "DD"),
    ("allow *(command=git *)", "git status", "qa"),
    ("allow Bash(git status > out.txt)", "git status > out.txt", "AA"),
    ("allow Bash(git *)", "git status > out.txt", "qa"),
]


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize(("written", "command", "letters"), ENV_CASES)
def test_decisions_about_shell_commands(written: str, command: str, letters: str):
    made = rules(written)
    modes: tuple[PermissionMode, ...] = ("default", "bypassPermissions")
    assert "".join(letter_of(decide(shell(command), made, mode)) for mode in modes) == letters


def test_a_shell_call_without_a_command_matches_any_deny_and_no_allow_pattern():
    call = Call(tool="Bash", arguments={})
    assert decide(call, rules("deny Bash(rm *)"), "bypassPermissions").behaviour == "deny"
    assert decide(call, rules("allow Bash(git *)"), "default").behaviour == "ask"


# What a verdict tells besides.


@pytest.mark.parametrize(
    ("written", "digest", "granted", "has_changed"),
    [
        (f"allow mcp__gh__create_issue@{DIGEST[:32]}", DIGEST, "no", False),
        (f"allow mcp__gh__create_issue@{DIGEST[:32]}", OTHER, "no", True),
        (f"allow mcp__gh__create_issue@{DIGEST[:32]}", "", "no", False),
        (
            f"allow mcp__gh__create_issue@{DIGEST[:32]} + allow mcp__gh__create_issue@{OTHER}",
            OTHER,
            "no",
            False,
        ),
        ("", OTHER, "lapsed", True),
        ("allow mcp__gh", OTHER, "lapsed", False),
        (f"allow mcp__gh__get_issue@{DIGEST[:32]}", OTHER, "no", False),
    ],
)
def test_a_changed_definition_is_reported(written: str, digest: str, granted: Any, has_changed: bool):
    verdict = decide(call("gh", "create_issue", digest=digest), rules(written), "default", granted=granted)
    assert verdict.has_changed is has_changed
    assert not (has_changed and verdict.behaviour == "allow")


@pytest.mark.parametrize(
    ("written", "judged", "word", "is_rememberable"),
    [
        ("", MAKE, None, True),
        ("ask mcp__gh", MAKE, None, False),
        ("managed ask mcp__gh", MAKE, None, False),
        ("", MAKE, SAYS["ask"], False),
        ("", PAGE, None, False),
        ("", shell("make"), None, True),
    ],
)
def test_a_grant_is_offered_only_where_it_prevents_questions(
    written: str, judged: Call, word: HookDecision | None, is_rememberable: bool
):
    assert decide(judged, rules(written), "default", hook_decision=word).is_rememberable is is_rememberable


def test_every_rule_about_the_tool_is_listed_with_the_reason_it_did_not_match():
    made = rules(
        "allow mcp__gh(repo=other/*) + deny mcp__gh__delete_* + ask mcp__gh(!readOnly) + allow mcp__gh"
    )
    verdict = decide(GET, made, "default")

    assert [(each.rule.text, each.matched) for each in verdict.considered] == [
        ("mcp__gh(!readOnly)", False),
        ("mcp__gh(repo=other/*)", False),
        ("mcp__gh", True),
    ]
    assert verdict.considered[0].why_not == "!readOnly is not met"
    assert verdict.considered[1].why_not == "repo=other/* is not met"
    assert verdict.considered[2].why_not is None


def test_commands_not_covered_by_a_shell_rule_are_named():
    verdict = decide(shell("git status; rm x"), rules("allow Bash(git *)"), "default")
    assert verdict.reason == "no rule allows rm x"
    assert "rm x" in (verdict.considered[0].why_not or "")


@pytest.mark.parametrize(
    "judged", [MAKE, LONG, PAGE, CHANGED, shell("git status"), shell("a * \\* 'b' > c; ls :*")]
)
def test_the_suggested_rule_for_a_call_allows_only_that_call(judged: Call):
    made = [parse(rule_for(judged), "allow", scope="user", source="here")]
    others = (GET, MAKE, PAGE, CHANGED, shell("git log"), shell("a b c 'b' > c; ls :x"))

    assert decide(judged, made, "default").behaviour == "allow"
    assert all(decide(other, made, "default").behaviour == "ask" for other in others if other != judged)


@pytest.mark.parametrize("server", ["gh", "my server", "@scope/pkg", "claude.ai Drive"])
def test_the_suggested_rule_for_a_server_allows_its_tools_only(server: str):
    made = Rulebook([parse(server_rule_for(call(server, "get")), "allow", scope="user", source="here")])
    for name, expected in ((server, "allow"), (f"{server}2", "ask")):
        judged = call(name, "drop", Hints(is_declared_destructive=True))
        assert decide(judged, made.about(judged), "default").behaviour == expected


def test_no_server_rule_is_suggested_for_built_in_tools_or_unusual_names():
    assert server_rule_for(PAGE) == ""
    assert server_rule_for(call("a(b", "get")) == ""
    assert server_rule_for(call("*", "get")) == ""
    assert server_rule_for(call("a__b", "get")) == "", "that is the name of a tool of a"


def test_the_suggested_rule_for_a_tool_contains_its_digest():
    assert rule_for(MAKE) == f"mcp__gh__create_issue@{DIGEST[:32]}"
    assert rule_for(shell("ls *")) == "Bash(ls \\*)"
    assert rule_for(PAGE) == "fetch_page"


@given(
    st.text(max_size=40)
    | st.sampled_from(["", " ", "x" * 30_000, "a)b(", "\\", "x:*", "'\"", "a\nb", "(", "*"])
)
def test_a_rule_that_cannot_be_read_is_never_suggested(command: str):
    text = rule_for(shell(command))
    if not text:
        assert not command.strip() or len(command) > 9000
        return
    made = [parse(text, "allow", scope="user", source="here")]
    assert decide(shell(command), made, "default").behaviour == "allow"
    assert decide(shell(f"{command}x"), made, "default").behaviour == "ask"


def test_no_wider_rule_is_suggested_if_it_could_not_be_parsed():
    assert rule_for(shell(" ")) == ""
    assert rule_for(Call(tool="Terminal", command="ls")) == ""
    assert rule_for(Call(tool="mcp__gh__x", server="gh", digest="abc")) == ""


# Large arguments.

WIDE = ["/x" + "a" * 50] * 100_000
LONG_TEXT = "/é%25" * 400_000
CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("written", "judged", "expected"),
    [
        ("deny mcp__s(path=/etc/*)", call("s", "open", path="/x"), False),
        ("deny mcp__s(path=/etc/*)", call("s", "open", path=["/x"] * 201), True),
        ("deny mcp__s(path=/etc/*)", call("s", "open", path={str(n): 1 for n in range(201)}), True),
        ("deny mcp__s(path=/etc/*)", call("s", "open", path=[[["/x"] * 40] * 40] * 40), True),
        ("deny mcp__s(path=/etc/*)", call("s", "open", path="x" * 4001), True),
        ("deny mcp__s(path=/etc/*)", call("s", "open", **{"x" * 4001: 1}), True),
        ("deny mcp__s(path=/etc/*)", call("s", "open", path=CYCLE), True),
        ("allow mcp__s(path=/etc/*)", call("s", "open", other=WIDE), True),
        ("deny mcp__t(path=/etc/*)", call("s", "open", path=WIDE), False),
        ("deny mcp__s(readOnly) + allow mcp__s", call("s", "open", path=WIDE), False),
        ("", call("s", "open", path=LONG_TEXT), False),
        ("deny Bash(rm *)", shell("ls"), False),
        ("deny Bash(rm *)", shell("ls " * 1000), True),
        ("deny Bash", shell("ls " * 1000), False),
    ],
)
def test_a_call_that_is_slow_to_compare_is_heavy(written: str, judged: Call, expected: bool):
    made = rules(written)
    assert is_heavy(judged, made) is expected
    assert is_heavy(judged, Rulebook(made).about(judged)) is expected


def test_whether_a_call_is_heavy_is_decided_quickly():
    made = Rulebook(rules("deny mcp__s(path=/etc/*)"))
    for path in (WIDE, LONG_TEXT, CYCLE, [WIDE] * 100, "/x"):
        judged = call("s", "open", path=path)
        seconds = min(timeit.repeat(lambda each=judged: is_heavy(each, made.about(each)), number=1, repeat=5))
        assert seconds < 0.005


@pytest.mark.parametrize("path", [["/x"] * 200_001, LONG_TEXT, CYCLE, [{"a": "/x"}] * 200_001], ids=type)
@pytest.mark.parametrize("condition", ["path=/etc/*", "path!=*x*", "path.a=/etc/*", "path.a!=*x*"])
def test_arguments_too_large_to_compare_match_deny_and_not_allow(path: Any, condition: str):
    judged = call("s", "open", path=path)
    began = time.monotonic()
    denied = decide(judged, rules(f"deny mcp__s({condition})"), "bypassPermissions")
    allowed = decide(judged, rules(f"allow mcp__s({condition})"), "default")
    assert time.monotonic() - began < 5
    assert allowed.behaviour == "ask"
    if "." in condition and isinstance(path, str):
        return  # nothing stands at such a path
    assert denied.behaviour == "deny"


def test_that_arguments_are_too_large_is_reported():
    judged = call("s", "open", path=["/x"] * 200_001)
    for behaviour in ("deny", "ask"):
        verdict = decide(judged, rules(f"{behaviour} mcp__s(path=/etc/*)"), "default")
        assert verdict.behaviour == behaviour
        assert "too much in the arguments" in verdict.reason
    verdict = decide(judged, rules("allow mcp__s(path=/x)"), "default")
    assert "too much in the arguments" in (verdict.considered[0].why_not or "")


def test_large_arguments_that_are_not_compared_have_no_effect():
    judged = call("s", "write", path="/home/x", content=LONG_TEXT, rows=[0] * 300_000)
    assert decide(judged, rules("deny mcp__s(path=/etc/*)"), "bypassPermissions").behaviour == "allow"
    assert decide(judged, rules("allow mcp__s(path=/home/*)"), "default").behaviour == "allow"


def test_a_decision_takes_microseconds():
    book = Rulebook(rules("allow mcp__gh + deny mcp__*__delete_* + ask mcp__other"))
    seconds = min(timeit.repeat(lambda: decide(GET, book.about(GET), "default"), number=2000, repeat=5))
    assert seconds / 2000 < 50e-6  # a tenth of it on an idle machine


# Properties.

names = st.sampled_from(["gh", "a.b", "a b", "x__y", "My Server", "gıt", "ｇｈ", "claude.ai Drive"])
tools = st.sampled_from(["get", "create_issue", "delete.repo", "délete", "x" * 90, "a__b", "ＧＥＴ"])
modes = st.sampled_from(MODES)
hints = st.builds(Hints, st.booleans(), st.booleans(), st.booleans(), st.booleans())
patterns = st.sampled_from(
    """* mcp__* mcp__gh mcp__gh__* mcp__*__get mcp__a_b mcp__a.b mcp__*(readOnly) mcp__*(repo=org/*)
    mcp__*(repo!=org/*) mcp__*__create_* mcp__x mcp__x__y mcp__x__y__*""".split()  # noqa: SIM905
)
scopes = st.sampled_from(["user", "project", "local", "enterprise", "dynamic", "plugin"])
calls = st.builds(
    lambda server, tool, hint, repo: call(server, tool, hint, repo=repo),
    names,
    tools,
    hints,
    st.sampled_from(["org/a", "evil/b", "org/../x", ["org/a"], None, 7]),
)


def rules_of(behaviours: list[Behaviour]) -> st.SearchStrategy[list[Rule]]:
    return st.lists(
        st.builds(
            lambda text, behaviour, scope: parse(text, behaviour, scope=scope, source="x"),
            patterns,
            st.sampled_from(behaviours),
            scopes,
        ),
        max_size=6,
    )


words = st.none() | st.sampled_from(list(SAYS.values()))
grants = st.sampled_from(["no", "yes", "lapsed"])


@pytest.mark.requirement("PRM-1")
@given(calls, rules_of(["allow", "ask", "deny"]), modes, grants, words, scopes, st.integers(0, 6))
def test_deny_always_wins(
    judged: Call, others: list[Rule], mode: PermissionMode, granted: Any, word: Any, scope: str, place: int
):
    deny = parse(judged.tool, "deny", scope=scope, source="x")
    made = [*others[:place], deny, *others[place:]]
    assert decide(judged, made, mode, granted=granted, hook_decision=word).behaviour == "deny"
    assert decide(judged, others, mode, granted=granted, hook_decision=SAYS["deny"]).behaviour == "deny"


@pytest.mark.requirement("PRM-2")
@given(calls, rules_of(["ask", "deny"]), modes, st.sampled_from(["no", "lapsed"]))
def test_only_bypass_mode_allows_calls_without_a_rule_or_grant(
    judged: Call, made: list[Rule], mode: PermissionMode, granted: Any
):
    verdict = decide(judged, made, mode, granted=granted)
    assert verdict.behaviour != "allow" or mode == "bypassPermissions"


@given(calls, rules_of(["allow", "ask", "deny"]), modes, grants, words)
def test_every_allowed_call_has_a_rule_grant_hook_or_mode(
    judged: Call, made: list[Rule], mode: PermissionMode, granted: Any, word: HookDecision | None
):
    verdict = decide(judged, made, mode, granted=granted, hook_decision=word)
    if verdict.behaviour == "allow":
        by_rule = verdict.rule is not None and verdict.rule.behaviour == "allow"
        said = word is not None and word.behaviour == "allow"
        assert by_rule or said or granted == "yes" or mode == "bypassPermissions"
    assert mode != "dontAsk" or verdict.behaviour != "ask"


@given(calls, rules_of(["allow", "ask", "deny"]), modes, grants, words)
def test_the_order_of_rules_and_the_rule_index_do_not_change_the_decision(
    judged: Call, made: list[Rule], mode: PermissionMode, granted: Any, word: HookDecision | None
):
    first = decide(judged, made, mode, granted=granted, hook_decision=word)
    for again in (list(reversed(made)), Rulebook(made).about(judged)):
        assert decide(judged, again, mode, granted=granted, hook_decision=word).behaviour == first.behaviour


def full_width(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" and char != "*" else char for char in text)


RECASED = (str.upper, str.lower, str.title, str.swapcase, full_width)


@pytest.mark.requirement("PRM-1")
@given(names, tools, st.sampled_from(RECASED), modes)
def test_other_letter_case_and_confusable_characters_never_escape_a_deny(
    server: str, tool: str, change: Any, mode: PermissionMode
):
    """Whoever is denied by one of its names is denied whatever it calls itself then."""
    for name in (f"mcp__{server}__{tool}", f"mcp__{server}", qualify(server, tool)):
        deny = parse(name, "deny", scope="user", source="x")
        again = parse(change(name), "deny", scope="user", source="x")
        assert decide(call(server, tool), [deny], mode).behaviour == "deny"
        assert decide(call(server, tool), [again], mode).behaviour == "deny"
    deny = parse(f"mcp__{server}__{tool}", "deny", scope="user", source="x")
    assert decide(call(change(server), change(tool)), [deny], mode).behaviour == "deny"


@pytest.mark.requirement("PRM-1")
@given(
    st.from_regex(r"[ab][ab._ -]{0,8}[ab]", fullmatch=True),
    st.from_regex(r"[cd][cd._ -]{0,88}[cd]", fullmatch=True),
    modes,
)
def test_names_that_become_the_same_name_never_escape_a_deny(server: str, tool: str, mode: PermissionMode):
    spaced = plain(server).replace("_", " "), plain(tool).replace("_", ".")
    for name in (plain(server), plain(tool)), (server, tool), spaced, (plain(server), tool):
        deny = parse("mcp__{}__{}".format(*name), "deny", scope="user", source="x")
        assert decide(call(server, tool), [deny], mode).behaviour == "deny"


@given(names, tools, st.sampled_from([8, 16, 32]))
def test_a_hash_in_the_name_never_escapes_a_deny(server: str, tool: str, length: int):
    hashed = Call(tool=qualify(server, tool, length), server=server, wire_name=tool)
    for name in (
        f"mcp__{server}__{tool}",
        qualify(server, tool),
        qualify(server, tool, 16),
        f"mcp__{server}__*",
    ):
        deny = parse(name, "deny", scope="user", source="x")
        assert decide(hashed, [deny], "bypassPermissions").behaviour == "deny"
    assert len(hashed.tool) <= LIMIT


@given(
    st.sampled_from(
        ["mcp__s(path=*)", "mcp__s(path=/data/*)", "mcp__s(path=/data/*.txt)", "mcp__s(path=*/x)"]
    ),
    st.lists(
        st.sampled_from(["/", "\\", "..", "a", "/data/", "%2e%2e", "%2E.", "%2f", "%252e%252e", "．．"]),
        max_size=8,
    ),
)
def test_an_allow_never_covers_a_path_with_parent_segments(text: str, parts: list[str]):
    path = "/data/" + "".join(parts) + "/../x"
    made = [parse(text, "allow", scope="user", source="x")]
    assert decide(call("s", "read", path=path), made, "default").behaviour == "ask"


def test_arguments_are_a_mapping_of_any_kind():
    class Odd(Mapping[str, Any]):
        def __getitem__(self, key: str) -> Any:
            return {"repo": object()}[key]

        def __iter__(self) -> Any:
            return iter(["repo"])

        def __len__(self) -> int:
            return 1

    judged = Call(tool="mcp__gh__x", server="gh", wire_name="x", arguments=Odd())
    assert decide(judged, rules("allow mcp__gh(repo=*)"), "default").behaviour == "ask"
    assert decide(judged, rules("deny mcp__gh(repo!=org)"), "default").behaviour == "deny"
