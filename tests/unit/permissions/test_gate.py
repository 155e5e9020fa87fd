"""Whether a call may be made: the mode decides, or a person is asked."""

import pytest

from dragoman.catalog.tools import BuiltinTool
from dragoman.events import EventBus, PermissionAsked
from dragoman.interaction import PermissionAnswer, PermissionQuestion
from dragoman.permissions.gate import MODES, Decision, ModeGate, PermissionMode
from dragoman.testing import ScriptedUser
from tests.unit.fakes import tool

TOOL = tool()
ARGUMENTS = {"n": 1}


async def decide(mode: PermissionMode, user: ScriptedUser | None, bus: EventBus | None = None) -> Decision:
    return await ModeGate(mode, user, bus or EventBus()).decide(TOOL, ARGUMENTS)


@pytest.mark.parametrize(
    ("mode", "answer", "allowed", "asked"),
    [
        ("default", True, True, True),
        ("default", False, False, True),
        ("default", None, False, False),
        ("bypassPermissions", False, True, False),
        ("bypassPermissions", None, True, False),
        ("dontAsk", True, False, False),
        ("dontAsk", None, False, False),
    ],
)
async def test_who_decides(mode: PermissionMode, answer: bool | None, allowed: bool, asked: bool):
    user = None if answer is None else ScriptedUser(answer)
    decision = await decide(mode, user)

    assert decision.allowed is allowed
    assert decision.reason
    assert user is None or bool(user.asked) is asked


def test_the_table_knows_every_mode():
    assert MODES == ("default", "bypassPermissions", "dontAsk")


async def test_the_question_says_everything_that_matters():
    user = ScriptedUser(True)
    await decide("default", user)

    assert user.asked == [
        PermissionQuestion(server="box", tool="mcp__box__open", title="open", arguments={"n": 1})
    ]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (PermissionAnswer(True), "allowed by the person"),
        (PermissionAnswer(False), "the person said no"),
        (PermissionAnswer(False, "use the other one"), "the person said no: use the other one"),
    ],
    ids=str,
)
async def test_the_persons_word_is_part_of_the_reason(answer: PermissionAnswer, reason: str):
    assert await decide("default", ScriptedUser(answer)) == Decision(answer.allowed, reason)


async def test_without_anyone_to_ask_the_reason_says_what_to_do():
    assert "permission_mode" in (await decide("default", None)).reason


async def test_every_question_is_an_event_with_its_answer():
    bus = EventBus()
    listener = bus.listen()
    await decide("default", ScriptedUser(False), bus)
    await decide("bypassPermissions", None, bus)
    bus.close()

    assert [event async for event in listener] == [
        PermissionAsked(server="box", tool="mcp__box__open", allowed=False, reason="the person said no")
    ]


async def test_every_call_is_asked_anew():
    user = ScriptedUser(True, False)
    gate = ModeGate("default", user, EventBus())

    assert [(await gate.decide(TOOL, ARGUMENTS)).allowed for _ in range(3)] == [True, False, False]
    assert len(user.asked) == 3


async def test_a_yes_for_the_session_is_asked_for_once():
    user = ScriptedUser(PermissionAnswer(True, for_session=True))
    gate = ModeGate("default", user, EventBus())

    assert [(await gate.decide(TOOL, {"n": number})).allowed for number in range(3)] == [True] * 3
    assert len(user.asked) == 1
    await gate.decide(tool(name="other"), {})
    assert [question.tool for question in user.asked] == ["mcp__box__open", "mcp__box__other"]


@pytest.mark.requirement("CAT-11")
@pytest.mark.parametrize("again", [True, False])
async def test_a_tool_that_became_another_is_asked_about_again_and_marked(again: bool):
    user = ScriptedUser(PermissionAnswer(True, for_session=True), PermissionAnswer(again))
    gate = ModeGate("default", user, EventBus())
    await gate.decide(TOOL, {})
    turned = tool({"type": "object", "properties": {"key": {"type": "string"}}})

    assert (await gate.decide(turned, {})).allowed is again
    assert [question.has_changed for question in user.asked] == [False, True]


async def test_a_no_takes_an_earlier_yes_back():
    user = ScriptedUser(PermissionAnswer(True, for_session=True), False, True)
    gate = ModeGate("default", user, EventBus())
    await gate.decide(TOOL, {})
    turned = tool({"type": "object", "maxProperties": 3})

    assert not (await gate.decide(turned, {})).allowed
    assert (await gate.decide(TOOL, {})).allowed
    assert len(user.asked) == 3


async def test_a_yes_does_not_outlive_the_entry_it_was_given_to():
    user = ScriptedUser(PermissionAnswer(True, for_session=True))
    gate = ModeGate("default", user, EventBus())
    for server in ("box", "other"):
        await gate.decide(tool(server=server), {})
    gate.forget("box")
    for server in ("box", "other"):
        await gate.decide(tool(server=server), {})

    assert [question.server for question in user.asked] == ["box", "other", "box"]


async def test_a_yes_to_a_built_in_tool_is_one_to_what_was_asked():
    async def read(arguments: object) -> str:
        return "read"

    user = ScriptedUser(PermissionAnswer(True, for_session=True))
    gate = ModeGate("default", user, EventBus())
    builtin = BuiltinTool("read", read, description="", input_schema={"type": "object"})
    for server in ("a", "b"):
        await gate.decide(builtin, {"server": server})

    assert [question.arguments["server"] for question in user.asked] == ["a", "b"]
