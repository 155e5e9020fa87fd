"""Rules: how they are written, which tools they mean, which arguments."""

import re
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.catalog.annotations import Hints
from dragoman.catalog.naming import assign, qualify
from dragoman.config.schema import PermissionRules
from dragoman.names import ServerName, WireToolName
from dragoman.permissions.rules import BEHAVIOURS, BadRule, Behaviour, Call, Rule, Rulebook, parse
from tests.cpu_time import shortest

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "permissions.md"
D32 = "0123456789abcdef" * 2


def rule(text: str, behaviour: Behaviour = "allow", scope: str = "user") -> Rule:
    return parse(text, behaviour, scope=scope, source="settings.json")


def call(server: str, tool: str, **arguments: Any) -> Call:
    return Call(tool=qualify(server, tool), server=server, wire_name=tool, arguments=arguments)


# Writing.

READABLE = [
    "mcp__gh",
    "mcp__gh__*",
    "mcp__gh__get_issue",
    "mcp__*__delete_*",
    "mcp__*",
    "*",
    "read_result",
    "read_*",
    "Bash",
    "Bash(git status)",
    "Bash(npm run *)",
    "Bash(npm run:*)",
    "Bash(echo (x))",
    "Bash(a && b)",
    f"mcp__gh__get_issue@{D32}",
    f"mcp__gh__get_issue@{D32.upper()}(readOnly)",
    f"Bash@{D32}(ls)",
    "mcp__gh(readOnly)",
    "mcp__gh(!readOnly)",
    "mcp__gh(READONLY, !openworld)",
    "mcp__gh(destructive,idempotent)",
    "mcp__gh(repo=org/*)",
    "mcp__gh( repo = org/* , readOnly )",
    "mcp__gh(repo!=org/*)",
    "mcp__gh(owner.name=me)",
    'mcp__gh(title="a, b) \\"c\\" \\* \\\\ *")',
    'mcp__gh(title="")',
    'mcp__gh(title=" a ")',
    "mcp__gh(path=C:\\temp\\*)",
    "mcp__gh(query=a(b)",
    "mcp__gh(n=5, ok=true, none=null)",
    "mcp__@scope/server__x",
    "mcp__claude.ai Google Drive",
    "mcp__großer Server__tun",
    "  mcp__gh  ",
    "mcp__gh___",
]


@pytest.mark.parametrize("text", READABLE)
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_rules_have_one_canonical_spelling(text: str, behaviour: Behaviour):
    first = rule(text, behaviour)
    again = rule(first.spelled(), behaviour)

    assert first.text == text
    assert again.spelled() == first.spelled()
    assert (again.subject, again.digest, again.conditions, again.shell) == (
        first.subject,
        first.digest,
        first.conditions,
        first.shell,
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("mcp__", "missing"),
        ("mcp__gh__", "missing"),
        ("(readOnly)", "no tool"),
        (f"@{D32}", "no tool"),
        ("mcp__gh@abc", "at least 32"),
        ("mcp__gh(", "closing parenthesis"),
        ("mcp__gh(readOnly", "closing parenthesis"),
        ("mcp__gh()", "a condition is one of readOnly"),
        ("mcp__gh(readonl)", "a condition is one of readOnly"),
        ("mcp__gh(readOnly,)", "a condition is one of readOnly"),
        ("mcp__gh(readOnly) x", "closing parenthesis"),
        ("mcp__gh(readOnly)(x)", "closing parenthesis"),
        ("mcp__gh(=x)", "an argument's name"),
        ("mcp__gh(!=x)", "an argument's name"),
        ("mcp__gh(a..b=x)", "an argument's name"),
        ("mcp__gh(.a=x)", "an argument's name"),
        ("mcp__gh(a=)", "no pattern after ="),
        ("mcp__gh(a=, readOnly)", "no pattern after ="),
        ('mcp__gh(a="x)', "no closing"),
        ('mcp__gh(a="x\\")', "no closing"),
        ('mcp__gh(a="x"y)', "closing parenthesis"),
        ('mcp__gh(a=x"y")', "closing parenthesis"),
        ("mcp__gh(a=x)y)", "closing parenthesis"),
        ("mcp__g)h", "closing parenthesis"),
        ("mcp__g\x00h", "control characters"),
        ("Bash()", "no command"),
        ("Bash( )", "no command"),
        ("Bash(ls", "closing parenthesis"),
        ("x" * 30_000, "at most"),
    ],
)
def test_a_rule_that_cannot_be_parsed_names_the_correct_form(text: str, words: str):
    with pytest.raises(BadRule, match=re.escape(words)):
        rule(text)


written = st.text('mcp__gh*@(),=!"\\. abf0Bash:\n', max_size=40) | st.text(max_size=40)


@given(written | written.map(lambda text: f"mcp__a({text})") | written.map(lambda text: f"Bash({text})"))
@example("mcp__a(" + "a=b," * 3000 + ")")
@example('mcp__a(x="' + "\\" * 9999)
@example("(" * 9999)
def test_any_text_is_a_rule_or_a_bad_rule_and_rules_round_trip(text: str):
    for behaviour in BEHAVIOURS:
        try:
            first = rule(text, behaviour)
        except BadRule:
            continue
        again = rule(first.spelled(), behaviour)
        assert again.spelled() == first.spelled()
        assert (again.subject, again.digest, again.conditions) == (
            first.subject,
            first.digest,
            first.conditions,
        )


# Which tools.

TOOLS = [
    # rule, server, tool, hit by an allow, hit by a deny
    ("mcp__gh", "gh", "get", True, True),
    ("mcp__gh__*", "gh", "get", True, True),
    ("mcp__gh__get", "gh", "get", True, True),
    ("mcp__gh__get", "gh", "get_issue", False, False),
    ("mcp__gh__get*", "gh", "get_issue", True, True),
    ("mcp__gh__*_issue", "gh", "get_issue", True, True),
    ("mcp__g*", "gh", "get", True, True),
    ("mcp__*", "gh", "get", True, True),
    ("*", "gh", "get", True, True),
    ("mcp__*__get", "gh", "get", True, True),
    ("mcp__*__get", "gh", "x__get", False, True),
    ("mcp__*_x", "a__b_x", "get", True, True),
    ("mcp__*_x", "gh", "get_x", False, True),
    # case and look-alikes
    ("mcp__GH", "gh", "get", False, True),
    ("mcp__gh__GET", "gh", "get", False, True),
    ("mcp__ｇｈ__get", "gh", "get", False, True),
    ("mcp__gh__get", "ｇｈ", "get", False, True),
    ("mcp__gh__get", "GH", "Get", False, True),
    ("mcp__gh__delete", "gh", "de\u00adlete", False, True),
    ("mcp__gh__file", "gh", "ﬁle", False, True),
    ("mcp__gh__kill", "gh", "\u212aill", False, True),
    # names that are written otherwise
    ("mcp__my server__x", "my server", "x", True, True),
    ("mcp__my_server", "my server", "x", True, True),
    ("mcp__my server", "my server", "x", True, True),
    ("mcp__my_server", "my.server", "x", True, True),
    ("mcp__my.server", "my_server", "x", False, True),
    ("mcp__gh__a_b", "gh", "a.b", True, True),
    ("mcp__gh__a.b", "gh", "a.b", False, True),
    ("mcp__gh__a.b", "gh", "a b", False, True),
    ("mcp__gh__a-b", "gh", "a-b", True, True),
    ("mcp__claude_ai_Google_Drive", "claude.ai Google Drive", "x", True, True),
    ("mcp__claude.ai Google Drive__x", "claude.ai Google Drive", "x", True, True),
    # a server is only itself
    ("mcp__a", "a__b", "c", False, False),
    ("mcp__a", "ab", "c", False, False),
    ("mcp__a__*", "a__b", "c", False, True),
    ("mcp__a__b", "a__b", "c", False, True),
    ("mcp__a__b__*", "a__b", "c", True, True),
    ("mcp__a__b__*", "a", "b__c", True, True),
    ("mcp__a__b*", "a__bx", "c", False, True),
    ("mcp__a__get_*", "a__get_x", "delete", False, True),
    ("mcp__a__b__c", "a", "b__c", True, True),
    ("mcp__a__b__c", "a__b", "c", True, True),
    # names too long for models
    ("mcp__gh", "gh", "x" * 90, True, True),
    ("mcp__gh__" + "x" * 90, "gh", "x" * 90, False, True),
    ("mcp__gh__xxx*", "gh", "x" * 90, True, True),
    (qualify("gh", "x" * 90), "gh", "x" * 90, True, True),
    (qualify("gh", "get", 8), "gh", "get", False, True),
    ("mcp__" + "s" * 90, "s" * 90, "x", True, True),
    # built-in tools are no server's
    ("read_result", "gh", "read_result", False, False),
    ("gh", "gh", "get", False, False),
]


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize(("text", "server", "tool", "allows", "denies"), TOOLS)
def test_which_tools_a_rule_matches(text: str, server: str, tool: str, allows: bool, denies: bool):
    made = call(server, tool)
    spelled = rule(text, "allow").is_about(made)
    assert (spelled, rule(text, "deny").is_about(made), rule(text, "ask").is_about(made)) == (
        allows,
        denies,
        denies,
    ), made.tool


def test_an_allow_distinguishes_servers_with_similar_names():
    """Their tools' names end with a hash each; the rule is for the server that is called just so."""
    keys = [(ServerName(name), WireToolName("x")) for name in ("a_b", "a.b")]
    names = assign(keys, ("a_b", "a.b")).of
    mine, other = (Call(tool=names[key], server=key[0], wire_name=key[1]) for key in keys)
    assert rule("mcp__a_b").is_about(mine)
    assert not rule("mcp__a_b").is_about(other)
    assert rule("mcp__a.b").is_about(other)
    assert rule("mcp__a_b", "deny").is_about(other)


def test_a_call_of_unknown_origin_is_allowed_only_by_its_exact_name():
    made = Call(tool="mcp__gh__get")
    assert rule("mcp__gh__get").is_about(made)
    assert not rule("mcp__gh").is_about(made)
    assert rule("mcp__gh__*", "deny").is_about(made)


# Which arguments.

S = "mcp__s"
ARGUMENTS: list[tuple[str, dict[str, Any], bool, bool]] = [
    # condition, arguments, an allow holds, a deny holds
    ("a=x", {"a": "x"}, True, True),
    ("a=x", {"a": "y"}, False, False),
    ("a=x", {}, False, False),
    ("a!=x", {}, False, True),
    ("a!=x", {"a": "y"}, True, True),
    ("a!=x", {"a": "x"}, False, False),
    ("a!=x", {"a": "X"}, False, True),
    ("a=x", {"a": "X"}, False, True),
    ("a=x", {"A": "x"}, False, True),
    ("a=x", {"a": " x "}, False, True),
    ("a=x", {"a": "ｘ"}, False, True),
    ("a=x", {"a": "x", "A": "y"}, False, True),
    ("a=x", {"a": "y", "A": "x"}, False, True),
    ("a!=x", {"a": "y", "A": "x"}, False, True),
    ("a=straße", {"a": "STRASSE"}, False, True),
    # numbers, truth values, null
    ("a=5", {"a": 5}, True, True),
    ("a=5", {"a": "5"}, True, True),
    ("a=5", {"a": 5.0}, False, True),
    ("a=5*", {"a": 51}, True, True),
    ("a=0.5", {"a": 0.5}, True, True),
    ("a=true", {"a": True}, True, True),
    ("a=True", {"a": True}, False, True),
    ("a=1", {"a": True}, False, False),
    ("a=null", {"a": None}, True, True),
    ("a=*", {"a": None}, True, True),
    ("a=*", {"a": ""}, True, True),
    ('a=""', {"a": ""}, True, True),
    ("a=*", {"a": 10**5000}, False, True),
    ("a=*", {"a": float("nan")}, False, True),
    # lists
    ("a=x", {"a": ["x", "x"]}, True, True),
    ("a=x", {"a": ["x", "y"]}, False, True),
    ("a=x", {"a": []}, False, False),
    ("a=x", {"a": [[]]}, False, False),
    ("a=x", {"a": [["x"]]}, True, True),
    ("a!=x", {"a": ["y", "z"]}, True, True),
    ("a!=x", {"a": ["x", "y"]}, False, True),
    ("a!=x", {"a": ["x", "x"]}, False, False),
    ("a!=x", {"a": []}, False, True),
    # objects
    ("a=x", {"a": {"b": "x"}}, False, True),
    ("a!=x", {"a": {"b": "y"}}, False, True),
    ("a.b=x", {"a": {"b": "x"}}, True, True),
    ("a.b=x", {"a.b": "x"}, True, True),
    ("a.b=x", {"a.b": "x", "a": {"b": "y"}}, False, True),
    ("a.b=x", {"a": [{"b": "x"}, {"b": "x"}]}, True, True),
    ("a.b=x", {"a": [{"b": "x"}, {"b": "y"}]}, False, True),
    ("a.b=x", {"a": [{"b": "x"}, {}]}, False, True),
    ("a.b=x", {"A": {"B": "X"}}, False, True),
    ("a.b=x", {"a": "x"}, False, False),
    ("a.b!=x", {"a": "x"}, False, True),
    # wildcards
    ("a=org/*", {"a": "org/x"}, True, True),
    ("a=org/*", {"a": "org/x/y"}, True, True),
    ("a=org/*", {"a": "organ/x"}, False, False),
    ("a=org/*", {"a": "org/../x"}, False, True),
    ("a=org/*", {"a": "ORG/x"}, False, True),
    ("a=org/*", {"a": "org\\x"}, False, True),
    ("a=org/*", {"a": "x/../org/y"}, False, True),
    ("a=org/*", {"a": "%6frg/y"}, False, True),
    ("a=org/*", {"a": "./org//y"}, False, True),
    ("a!=org/*", {"a": "org/../x"}, False, True),
    ("a!=org/*", {"a": "x/../org/y"}, False, True),
    ("a!=org/*", {"a": "x/y"}, True, True),
    ("a=/d/*", {"a": "/d/.."}, False, True),
    ("a=/d/*", {"a": "/d/a..b"}, True, True),
    ("a=/d/*", {"a": "/d/..."}, True, True),
    ("a=/d/*", {"a": "/d/%2e%2e/x"}, False, True),
    ("a=/d/*", {"a": "/d/%252e%252e/x"}, False, True),
    ("a=/d/*", {"a": "/d/..%2fx"}, False, True),
    ("a=/d/*", {"a": "/d/..\\x"}, False, True),
    ("a=/d/*", {"a": "/d/x?y=../z"}, False, True),
    ("a=../d/*", {"a": "../d/x"}, True, True),
    ("a=../d/*", {"a": "../d/../x"}, False, True),
    ("a=/d/.*", {"a": "/d/../x"}, False, True),
    ("a=https://*.x.com/*", {"a": "https://a.x.com/b?c"}, True, True),
    ("a=https://*.x.com/*", {"a": "https://evil.com/.x.com/"}, False, True),
    ("a=https://*.x.com/*", {"a": "https://evil.com?.x.com/"}, False, True),
    ("a=https://*.x.com/*", {"a": "https://evil.com#.x.com/"}, False, True),
    ("a=https://*.x.com/*", {"a": "https://evil.com\\.x.com/"}, False, True),
    ("a=https://*.x.com/*", {"a": "https://u@evil.com%2f.x.com/"}, False, True),
    ("a=https://*.x.com/*", {"a": "https://evil.com／.x.com/"}, False, True),
    ("a=*.x.com", {"a": "a.x.com"}, True, True),
    ("a=*.x.com", {"a": "evil.com/?.x.com"}, False, True),
    ("a=*x", {"a": "a\nb x"}, False, True),
    ("a=x*", {"a": "x\ny"}, True, True),
    ('a="x\\*"', {"a": "x*"}, True, True),
    ('a="x\\*"', {"a": "xy"}, False, False),
    ('a="b, c) d"', {"a": "b, c) d"}, True, True),
    ('a="\\"q\\""', {"a": '"q"'}, True, True),
    ("a=**", {"a": "x"}, True, True),
    ("a=*a*b*", {"a": "xaxbx"}, True, True),
    ("a=*a*b*", {"a": "xbxa"}, False, False),
    # several
    ("a=x, b=y", {"a": "x", "b": "y"}, True, True),
    ("a=x, b=y", {"a": "x"}, False, False),
]


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize(("condition", "arguments", "allows", "denies"), ARGUMENTS)
def test_which_arguments_a_rule_matches(
    condition: str, arguments: dict[str, Any], allows: bool, denies: bool
):
    made = Call(tool="mcp__s__t", server="s", wire_name="t", arguments=arguments)
    text = f"mcp__s({condition})"
    assert rule(text, "allow").applies(made) is allows
    assert rule(text, "deny").applies(made) is denies
    assert rule(text, "ask").applies(made) is denies


@pytest.mark.parametrize("name", ["readOnly", "destructive", "idempotent", "openWorld"])
def test_rules_about_annotations(name: str):
    field = {"readOnly": "read_only", "openWorld": "open_world"}.get(name, name)
    yes, no = (Call(tool="mcp__s__t", server="s", hints=Hints(**{field: value})) for value in (True, False))
    for behaviour in BEHAVIOURS:
        assert rule(f"mcp__s({name})", behaviour).applies(yes)
        assert not rule(f"mcp__s({name})", behaviour).applies(no)
        assert rule(f"mcp__s(!{name})", behaviour).applies(no)
        assert not rule(f"mcp__s(!{name})", behaviour).applies(yes)


def test_nested_arguments_are_compared_at_any_depth():
    deep: Any = "x"
    for _ in range(20_000):
        deep = [deep]
    made = Call(tool="mcp__s__t", server="s", arguments={"a": deep})
    assert rule("mcp__s(a=x)").applies(made)
    assert rule("mcp__s(a=x)", "deny").applies(made)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("*" * 200 + "z", "a" * 100_000),
        ("*a" * 500 + "*z", "a" * 100_000),
        ("*aab" * 500, "aa" * 50_000),
        ("a*" * 500 + "z", "a" * 100_000),
        ("*" + "a" * 60 + "b*", "a" * 100_000),
        ("*/" * 500, "/" * 100_000),
        ("*..*", "../" * 33_000),
        ("*%2e*z", "%252e" * 20_000),
        ("é*" * 300, "é" * 100_000),
    ],
)
def test_matching_takes_linear_time(pattern: str, text: str):
    def seconds(behaviour: str, part: str) -> float:
        made = Call(tool="mcp__s__t", server="s", arguments={"a": part})
        judge = rule(f"mcp__s(a={pattern})", behaviour)
        start = time.process_time()
        judge.applies(made)
        return time.process_time() - start

    for behaviour in ("allow", "deny"):
        # Linear is 8 times as long, quadratic 64 times.
        bound = 30 * max(shortest(partial(seconds, behaviour, text[: len(text) // 8])), 0.001)
        assert shortest(partial(seconds, behaviour, text), below=bound) < bound


# The book.


def test_the_rule_index_returns_the_rules_about_a_tool_strictest_first():
    book = Rulebook.of(
        [
            ("user", "u.json", PermissionRules(allow=("mcp__gh", "mcp__x"), deny=("mcp__gh__delete_*",))),
            ("enterprise", "m.json", PermissionRules(ask=("mcp__*",), deny=("*__delete_repo",))),
        ]
    )
    assert book.problems == ()
    about = book.about(call("gh", "delete_repo"))
    assert [(each.behaviour, each.scope) for each in about] == [
        ("deny", "enterprise"),
        ("deny", "user"),
        ("ask", "enterprise"),
        ("allow", "user"),
    ]
    assert book.about(call("gh", "delete_repo")) is about
    assert about[0].is_managed
    assert not about[1].is_managed
    assert about[1].description == "deny rule mcp__gh__delete_* of user (u.json)"


@pytest.mark.parametrize(
    ("behaviour", "scope", "text", "stands_for"),
    [
        ("allow", "user", "mcp__gh(oops)", None),
        ("allow", "enterprise", "", None),
        ("deny", "user", "mcp__gh(oops)", "mcp__gh"),
        ("ask", "user", "mcp__gh(oops)", "mcp__gh"),
        ("deny", "user", "mcp__gh(a=", "mcp__gh"),
        ("deny", "user", "mcp__gh@12", "mcp__gh"),
        ("deny", "user", "mcp__gh__", "mcp__gh__*"),
        ("deny", "user", "Bash(rm", "Bash"),
        ("deny", "user", "Bash()", "Bash"),
        ("deny", "user", "", None),
        ("deny", "user", "(x)", None),
        ("deny", "enterprise", "", "*"),
        ("deny", "enterprise", "(x)", "*"),
        ("ask", "enterprise", "(x)", "*"),
        ("deny", "enterprise", "mcp__gh(oops)", "mcp__gh"),
    ],
)
def test_a_deny_that_cannot_be_parsed_still_denies(
    behaviour: Behaviour, scope: str, text: str, stands_for: str | None
):
    book = Rulebook.of([(scope, "file.json", PermissionRules(**{behaviour: (text,)}))])

    assert len(book.problems) == 1
    assert "file.json" in book.problems[0]
    assert behaviour in book.problems[0]
    assert [(each.behaviour, each.subject.text) for each in book.rules] == (
        [] if stands_for is None else [(behaviour, stands_for)]
    )
    assert all(each.is_bare and each.text == text for each in book.rules)


def test_a_problem_shows_no_control_characters():
    book = Rulebook.of([("user", "f.json", PermissionRules(deny=("mcp__gh(\x1b[2J)",)))])
    assert "\x1b" not in book.problems[0]
    assert "\x1b" not in book.rules[0].description


# The guide.

BLOCK = re.compile(r"^```json[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_every_rule_of_the_guide_can_be_parsed():
    blocks = [msgspec.json.decode(text) for text in BLOCK.findall(GUIDE.read_text())]
    permissions = [block["permissions"] for block in blocks if "permissions" in block]
    count = 0
    for given_rules in permissions:
        book = Rulebook.of([("user", "guide", msgspec.convert(given_rules, PermissionRules))])
        assert book.problems == ()
        count += len(book.rules)
    assert count >= 10
    # Rules inside tables and sentences, too.
    for text in re.findall(r"`((?:mcp__|Bash)[^`]*)`", GUIDE.read_text()):
        rule(text, "deny")


def test_the_guide_and_the_module_show_the_same_grammar():
    from dragoman.permissions import rules

    grammar = re.search(r"^```ebnf\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert grammar is not None
    in_module = [line.strip() for line in (rules.__doc__ or "").splitlines()]
    for line in grammar[1].splitlines():
        assert line.strip() in in_module
