"""T601: a deny rule about SQL words finds them whatever comments separate them, and whatever strings
precede them: databases differ in where a comment ends."""

import time

import pytest

from dragoman.permissions.comments import SCAN_LIMIT
from dragoman.permissions.decide import decide
from dragoman.permissions.rules import Behaviour, Call, parse

pytestmark = pytest.mark.requirement("PRM-2")

DENIED = [
    "drop /* /* */ */ table x",
    "drop /* /* a */ b */ table x",
    "/*!drop*/ table x",
    "/*!50000drop*/ table x",
    "/*!50000 drop */ /*M!100100 table */ x",
    "select '/*'; drop/**/table x --*/",
    "select '/*'; drop/*/*/table x; select '*/'",
    "select '/*'; drop /* /* a */ b */ table x; select '*/'",
    "select '--'; drop/**/table x",
    "select '--'; drop --a\n table x",
    "select \"#\", '/*'; drop -- a -- b\n#c\n /**/ table x",
    "drop # a\n table x",
    "DROP#a\r\nTABLE x",
    "select 1; drop /* a */ -- b\n /* c */ table",
    "select%20'--'; drop/**/table",
]
ASKED = [
    "drop /* table */ index x",
    "drop -- table",
    "drop # table x",
    "/* drop */ x table",
    "drop*table",
    "drop /table",
    "raindrop; # a\n tables",
]


def behaviour_of(sql: str, rule: str = "mcp__db__query(sql=*drop table*)", kind: Behaviour = "deny") -> str:
    call = Call(tool="mcp__db__query", server="db", wire_name="query", arguments={"sql": sql})
    return decide(call, [parse(rule, kind, scope="user", source="")], "default").behaviour


@pytest.mark.parametrize("sql", DENIED)
def test_t601_words_are_found_with_any_comments_between_them(sql: str):
    assert behaviour_of(sql) == "deny"


@pytest.mark.parametrize("sql", ASKED)
def test_t601_words_that_are_not_adjacent_are_not_found(sql: str):
    assert behaviour_of(sql) == "ask"


@pytest.mark.parametrize(
    ("rule", "sql"),
    [
        ("mcp__db__query(sql=drop table users)", "drop /* /**/ */ table#\nusers"),
        ("mcp__db__query(sql=*drop table users*)", "'--' drop /**/ table --\n users"),
        ("mcp__db__query(sql=*delete from * limit*)", "'/*' delete/**/from users limit"),
        ('mcp__db__query(sql="* drop table *")', "'--'; drop/**/table x"),
    ],
)
def test_t601_patterns_in_other_forms_ignore_comments_too(rule: str, sql: str):
    assert behaviour_of(sql, rule) == "deny"


def test_t601_an_allow_rule_is_compared_with_the_sent_text():
    assert behaviour_of("drop/**/table x", "mcp__db__query(sql=*drop table*)", "allow") == "ask"


@pytest.mark.parametrize("part", ["drop/*", "drop/**/", "drop--", "drop*/ /*drop*/", "drop \n"])
def test_t601_very_many_comments_take_bounded_time_and_are_denied_if_in_doubt(part: str):
    began = time.perf_counter()
    found = behaviour_of(part * (900_000 // len(part)))
    assert time.perf_counter() - began < 10
    assert found in ("deny", "ask")


def test_t601_more_comments_than_the_limit_are_denied():
    assert behaviour_of("drop /*" * (900_000 // 7)) == "deny"
    assert SCAN_LIMIT < 900_000 * (900_000 // 7)
