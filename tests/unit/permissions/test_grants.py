"""What a person allowed for this session."""

import pytest

from dragoman.interaction import Caller
from dragoman.permissions.grants import SessionGrants, is_rememberable
from dragoman.permissions.rules import Call

TOOL = Call(tool="mcp__gh__get", server="gh", wire_name="get", digest="a" * 64)
CHANGED = Call(tool="mcp__gh__get", server="gh", wire_name="get", digest="b" * 64)
OTHER = Call(tool="mcp__gh__put", server="gh", wire_name="put", digest="a" * 64)
ELSEWHERE = Call(tool="mcp__gl__get", server="gl", wire_name="get", digest="a" * 64)
RENAMED = Call(tool="mcp__gh__get_12345678", server="gh", wire_name="get", digest="a" * 64)
LIST = Call(tool="Bash", command="ls", digest="c" * 64)
MORE = Call(tool="Bash", command="ls; rm x", digest="c" * 64)
PAGE = Call(tool="read_result", digest="d" * 64)


@pytest.mark.parametrize(
    ("given", "asked", "state"),
    [
        (None, TOOL, "no"),
        (TOOL, TOOL, "yes"),
        (TOOL, CHANGED, "lapsed"),
        (TOOL, OTHER, "no"),
        (TOOL, ELSEWHERE, "no"),
        (TOOL, RENAMED, "yes"),
        (LIST, LIST, "yes"),
        (LIST, MORE, "no"),
        (PAGE, PAGE, "no"),
    ],
)
def test_a_grant_applies_only_to_its_tool_and_definition(given: Call | None, asked: Call, state: str):
    grants = SessionGrants()
    if given is not None:
        grants.remember(given)
    assert grants.state(asked) == state


def test_a_grant_ends_with_a_refusal_or_with_its_server():
    grants = SessionGrants()
    for call in (TOOL, OTHER, ELSEWHERE):
        grants.remember(call)
    grants.revoke(OTHER)
    assert [grants.state(call) for call in (TOOL, OTHER, ELSEWHERE)] == ["yes", "no", "yes"]
    grants.forget("gh")
    assert [grants.state(call) for call in (TOOL, OTHER, ELSEWHERE)] == ["no", "no", "yes"]


def test_a_new_grant_applies_to_the_new_definition():
    grants = SessionGrants()
    grants.remember(TOOL)
    grants.remember(CHANGED)
    assert grants.state(CHANGED) == "yes"
    assert grants.state(TOOL) == "lapsed"


def test_a_grant_for_a_built_in_tool_applies_to_its_arguments():
    assert [is_rememberable(call) for call in (TOOL, LIST, PAGE)] == [True, True, False]


@pytest.mark.parametrize("command", ["", " \n", "echo " + "x" * 5000])
def test_a_grant_without_or_with_too_large_arguments_is_not_kept(command: str):
    grants = SessionGrants()
    call = Call(tool="Bash", command=command)
    grants.remember(call)
    assert grants.state(call) == "no"


def test_a_grant_of_one_caller_does_not_apply_to_another():
    grants = SessionGrants()
    grants.remember(Call(tool="mcp__box__open", server="box", digest="1"))
    other = Call(tool="mcp__box__open", server="box", digest="1", caller=Caller("somebody else"))

    assert grants.state(Call(tool="mcp__box__open", server="box", digest="1")) == "yes"
    assert grants.state(other) == "no"
