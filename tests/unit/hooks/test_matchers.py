"""Which names a matcher means."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.catalog.naming import qualify
from dragoman.hooks import matchers
from dragoman.permissions.subject_form import fault_of_name
from dragoman.permissions.subjects import all_names
from tests.cpu_time import CpuTimer

NAMES = ("mcp__gh__list", "mcp__gh__delete_repo", "mcp__memory__create", "Bash", "my.server", "my-server")


def meant(matcher: str) -> set[str]:
    return set(filter(matchers.parse(matcher), NAMES))


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize(
    ("matcher", "expected"),
    [
        ("", set(NAMES)),
        ("*", set(NAMES)),
        (".*", set(NAMES)),
        ("  ", set(NAMES)),
        ("Bash", {"Bash"}),
        ("bash", set()),
        ("Bas", set()),
        ("mcp__gh__*", {"mcp__gh__list", "mcp__gh__delete_repo"}),
        ("mcp__*__delete_*", {"mcp__gh__delete_repo"}),
        ("mcp__memory__.*", {"mcp__memory__create"}),
        ("mcp__.*__create", {"mcp__memory__create"}),
        ("mcp__.*__create|Bash", {"mcp__memory__create", "Bash"}),
        ("mcp__gh__*|mcp__memory__.*", {"mcp__gh__list", "mcp__gh__delete_repo", "mcp__memory__create"}),
        ("Bash|", {"Bash"}),
        ("|", set()),
        ("mcp__gh__list*list", set()),
        ("m*i*s*t", {"mcp__gh__list"}),
        ("my.server", {"my.server"}),
        ("^Bash$", {"Bash"}),
        ("(?i)bash", {"Bash"}),
        ("ash", set()),
        ("as(h)", set()),
        (r"mcp__\w+__(list|create)", {"mcp__gh__list", "mcp__memory__create"}),
        ("mcp__[^_]+__.+", {"mcp__gh__list", "mcp__gh__delete_repo", "mcp__memory__create"}),
        ("my.server+", {"my.server", "my-server"}),
        ("Bash|(x)", {"Bash"}),
    ],
)
def test_which_names_a_matcher_matches(matcher: str, expected: set[str]):
    assert meant(matcher) == expected


@pytest.mark.parametrize(
    ("matcher", "name", "expected"),
    [
        ("", "anything", True),
        ("mcp__GH__List", "mcp__gh__list", True),
        ("mcp__g.h__list", "mcp__g_h__list", True),
        ("mcp__g.h__*", "mcp__g_h__list", True),
        ("mcp__g.h__*", "mcp__gxh__list", False),
        ("mcp__gh__li", "mcp__gh__list", False),
        ("x|MCP__gh__*", "mcp__gh__list", True),
        ("mcp__(GH|db)__list", "mcp__gh__list", True),
        ("mcp__(GH|db)__lis", "mcp__gh__list", False),
        (r"mcp__\W__list", "mcp__w__list", False),
    ],
)
def test_loose_comparison_ignores_case_and_special_characters(matcher: str, name: str, expected: bool):
    assert matchers.parse(matcher).may_mean([name]) is expected
    assert matchers.parse(matcher).may_mean(["other", name]) is expected


@pytest.mark.parametrize("tool", ["löschen", "straße", "İstanbul", "ｄelete", "delete\u200b"])
@pytest.mark.parametrize("server", ["gh", "büro"])
@pytest.mark.parametrize("form", ["mcp__{s}__{t}", "mcp__{s}__({t}|b)", "mcp__{s}__*", "x|MCP__{s}__{t}"])
def test_letters_beyond_ascii_are_compared_as_rules_compare_them(tool: str, server: str, form: str):
    names = all_names(qualify(server, tool), server, tool)
    for text in (form.format(s=server, t=tool), form.format(s=server, t=tool.capitalize())):
        assert matchers.parse(text).may_mean(names)
    assert not matchers.parse(form.format(s="other", t=tool)).may_mean(names)


@pytest.mark.parametrize("matcher", ["(", "[", "a)|(b", "(?!x).*", r"(a)\1", "a{1000}{1000}{1000}", "+"])
def test_an_invalid_expression_is_reported(matcher: str):
    with pytest.raises(matchers.BadMatcher, match="regular expression"):
        matchers.parse(matcher)


def test_a_matcher_of_ten_thousand_characters_works_and_a_longer_one_is_reported():
    names = "|".join(f"mcp__s__tool{number}" for number in range(1000))[: matchers.LIMIT_CHARACTERS]
    assert matchers.parse(names)("mcp__s__tool7")
    assert matchers.parse(f"({names[:9000]})")("mcp__s__tool7")
    with pytest.raises(matchers.BadMatcher, match="10001"):
        matchers.parse("a" * 10_001)


@pytest.mark.parametrize("matcher", ["(a+)+b", "(a|a)*b", "(.*)" * 8 + "b", "a*" * 60 + "b"])
def test_no_name_makes_a_matcher_slow(matcher: str):
    matches = matchers.parse(matcher)
    started = CpuTimer()
    assert not matches("a" * 64)
    assert started.seconds() < 1


def test_a_line_break_does_not_end_a_name():
    assert not matchers.parse("(Bash)")("Bash\n")


@given(st.text("ab*", max_size=12), st.text("ab", max_size=12))
def test_wildcards_match_like_the_equivalent_expression(matcher: str, name: str):
    expression = re.sub(r"\*+", ".*", matcher) or ".*"
    assert matchers.parse(matcher)(name) == (re.fullmatch(expression, name) is not None)


BEGIN = "the names of servers' tools begin with mcp__"
CHARACTERS = "names of servers' tools begin with mcp__, others have letters, digits, _ and - only"


def faults(matcher: str) -> list[str]:
    return [fault for name in matchers.listed_names(matcher) if (fault := fault_of_name(name))]


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize(
    ("matcher", "why"),
    [
        ("mcp_box__delete", [f"{BEGIN} (did you mean mcp__box__delete?)"]),
        ("Write|mcp_box__delete", [f"{BEGIN} (did you mean mcp__box__delete?)"]),
        ("Write, mcp_box__delete", [f"{BEGIN} (did you mean mcp__box__delete?)"]),
        ("^mcp_box__delete$", [f"{BEGIN} (did you mean mcp__box__delete?)"]),
        ("MCP-box__delete", [f"{BEGIN} (did you mean mcp__box__delete?)"]),
        ("mcp:box:delete", [f"{BEGIN} (did you mean mcp__box__delete?)"]),
        ("mcp__box:delete", ["no name of a tool has the character : in it (did you mean mcp__box__delete?)"]),
        ("!mcp__box__read", [f"{CHARACTERS} (did you mean mcp__box__read?)"]),
        ("mcp_a__b|mcp_c__d", [f"{BEGIN} (did you mean mcp__{each}?)" for each in ("a__b", "c__d")]),
    ],
)
def test_names_that_no_tool_can_have_are_found(matcher: str, why: list[str]):
    assert faults(matcher) == why


FINE = """mcp__* mcp_* mcp* mcp_.* .*__delete *delete* Write|Edit Write,Edit Bash(ls) mcp__box mcp__box__a:b
    mcp::box::delete mcp..box..delete mcp__@org/files__* mcp__c++ mcp__box/delete mcp_+box__x (mcp_box)__x
    'Write'"""


@pytest.mark.parametrize(
    "matcher", ["", "*", ".*", "|", "Write | Edit", "Write, Edit", "mcp__my box__delete", *FINE.split()]
)
def test_a_matcher_that_may_match_a_tool_is_not_a_mistake(matcher: str):
    assert faults(matcher) == []


@given(
    st.text("bo:x/.-! ", max_size=4).map("b{}".format),
    st.text("de:/.-! _", min_size=1, max_size=4),
    st.sampled_from(["mcp__{s}__{t}", "mcp_{s}__{t}", "mcp:{s}:{t}", "!mcp__{s}__{t}"]),
)
def test_no_matcher_that_matches_the_tool_is_a_mistake(server: str, tool: str, form: str):
    matcher = form.format(s=server, t=tool)
    if faults(matcher):
        assert not matchers.parse(matcher).may_mean(all_names(qualify(server, tool), server, tool))
