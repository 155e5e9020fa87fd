"""Whether a call may be made: rules and the mode decide, or a person is asked."""

import asyncio
from typing import Any

import pytest

from dragoman.catalog.tools import BuiltinTool
from dragoman.config.schema import PermissionRules
from dragoman.events import EventBus, PermissionAsked
from dragoman.hooks.verdicts import HookDecision
from dragoman.interaction import PermissionAnswer, PermissionQuestion
from dragoman.permissions.checker import Deciders, Decision, PermissionChecker, call_of, judge
from dragoman.permissions.classifier import ByAnnotations
from dragoman.permissions.modes import MODES, PermissionMode
from dragoman.permissions.rules import Rulebook
from dragoman.questions import Questions
from dragoman.testing import ScriptedUser
from tests.unit.fakes import no_hooks, tool

TOOL = tool()
ARGUMENTS = {"n": 1}


KEPT: list[tuple[str, str]] = []


async def _keep(scope: str, rule: str) -> None:
    KEPT.append((scope, rule))


def gate_of(mode: PermissionMode, user: Any, bus: EventBus, **rules: tuple[str, ...]) -> PermissionChecker:
    book = Rulebook.of([("user", "settings.json", PermissionRules(**rules))])
    classifier = ByAnnotations(lambda server: False)
    return PermissionChecker(book, mode, Deciders(classifier, no_hooks(), Questions(user)), bus, keep=_keep)


async def decide(mode: PermissionMode, user: ScriptedUser | None, bus: EventBus | None = None) -> Decision:
    return await gate_of(mode, user, bus or EventBus()).decide(TOOL, ARGUMENTS)


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
        ("auto", True, True, True),
        ("auto", None, False, False),
        ("plan", True, False, False),
    ],
)
async def test_which_rule_or_mode_decides(
    mode: PermissionMode, answer: bool | None, allowed: bool, asked: bool
):
    user = None if answer is None else ScriptedUser(answer)
    decision = await decide(mode, user)

    assert decision.allowed is allowed
    assert decision.reason
    assert user is None or bool(user.asked) is asked


@pytest.mark.parametrize(
    ("rules", "always"),
    [
        pytest.param({"allow": ("mcp__box",)}, True, id="allowed"),
        pytest.param({"allow": ("mcp__box", "mcp__box__open(n=2)")}, True, id="allowed, then a condition"),
        pytest.param({"allow": ("mcp__box",), "deny": ("mcp__other",)}, True, id="another one is denied"),
        pytest.param({"allow": ("mcp__box__open(n=1)", "mcp__box")}, False, id="a condition comes first"),
        pytest.param({"allow": ("mcp__box@" + 64 * "0",)}, False, id="only a certain definition"),
        pytest.param({"allow": ("mcp__box",), "deny": ("mcp__box__open(n=2)",)}, False, id="a deny"),
        pytest.param({"allow": ("mcp__box",), "ask": ("mcp__box__open(n=2)",)}, False, id="an ask"),
        pytest.param({"deny": ("mcp__box",)}, False, id="denied"),
        pytest.param({}, False, id="no rules"),
    ],
)
@pytest.mark.parametrize("mode", sorted(MODES))
async def test_a_decision_by_rules_alone_equals_the_full_decision(
    rules: dict[str, tuple[str, ...]], always: bool, mode: PermissionMode
):
    checker = gate_of(mode, None, EventBus(), **rules)
    quickly = checker.decide_by_rules_alone(TOOL, None)

    bypassed = mode == "bypassPermissions" and not rules
    assert (quickly is not None) is (bypassed or (always and mode != "plan"))
    book = Rulebook.of([("user", "settings.json", PermissionRules(**rules))])
    for arguments in ({"n": 1}, {"n": 2}, {}):
        verdict = judge(call_of(TOOL, arguments), book, mode)
        if quickly is not None:
            assert (quickly.allowed, quickly.reason) == (verdict.behaviour == "allow", verdict.reason)
            assert (quickly.rule and quickly.rule.text) == (verdict.rule and verdict.rule.text)
            assert await checker.decide(TOOL, arguments) == quickly
    assert checker.decide_by_rules_alone(TOOL, HookDecision("ask", "", "h")) is None


def test_the_table_contains_every_mode():
    assert set(MODES) == {"default", "bypassPermissions", "auto", "dontAsk", "plan"}


async def test_the_question_contains_all_details():
    user = ScriptedUser(True)
    await decide("default", user)

    assert user.asked == [
        PermissionQuestion(
            server="box",
            tool="mcp__box__open",
            title="open",
            arguments={"n": 1},
            risk="writes",
            reason="no rule allows it",
            rule=f"mcp__box__open@{TOOL.digest[:32]}",
            server_rule="mcp__box",
        )
    ]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (PermissionAnswer(True), "allowed by the person"),
        (PermissionAnswer(False), "denied by the person"),
        (PermissionAnswer(False, "use the other one"), "denied by the person: use the other one"),
    ],
    ids=str,
)
async def test_the_persons_explanation_is_part_of_the_reason(answer: PermissionAnswer, reason: str):
    assert await decide("default", ScriptedUser(answer)) == Decision(answer.allowed, reason, "person")


@pytest.mark.parametrize(("returned", "named"), [(True, "a value of type bool"), (None, "None")])
async def test_an_answer_of_another_type_is_a_refusal_that_names_the_expected_type(returned: Any, named: str):
    class Careless(ScriptedUser):
        async def allow(self, question: PermissionQuestion) -> Any:
            return returned

    reason = f"`allow` of the Interaction returned {named}, and not a PermissionAnswer"
    assert await decide("default", Careless()) == Decision(
        False, f"denied by the person: asking failed: {reason}", "person"
    )


async def test_without_an_interaction_the_reason_gives_the_next_step():
    assert "`dragoman permissions explain mcp__box__open`" in (await decide("default", None)).reason


async def test_every_question_is_an_event_with_its_answer():
    bus = EventBus()
    listener = bus.listen()
    await decide("default", ScriptedUser(False), bus)
    await decide("bypassPermissions", None, bus)
    bus.close()

    assert [event async for event in listener] == [
        PermissionAsked(server="box", tool="mcp__box__open", allowed=False, reason="denied by the person")
    ]


async def test_every_call_is_asked_about_again():
    user = ScriptedUser(True, False)
    gate = gate_of("default", user, EventBus())

    assert [(await gate.decide(TOOL, ARGUMENTS)).allowed for _ in range(3)] == [True, False, False]
    assert len(user.asked) == 3


async def test_after_an_allow_for_the_session_no_further_question_is_asked():
    user = ScriptedUser(PermissionAnswer(True, for_session=True))
    gate = gate_of("default", user, EventBus())

    assert [(await gate.decide(TOOL, {"n": number})).allowed for number in range(3)] == [True] * 3
    assert len(user.asked) == 1
    await gate.decide(tool(name="other"), {})
    assert [question.tool for question in user.asked] == ["mcp__box__open", "mcp__box__other"]


@pytest.mark.requirement("CAT-11")
@pytest.mark.parametrize("again", [True, False])
async def test_a_tool_that_became_another_is_asked_about_again_and_marked(again: bool):
    user = ScriptedUser(PermissionAnswer(True, for_session=True), PermissionAnswer(again))
    gate = gate_of("default", user, EventBus())
    await gate.decide(TOOL, {})
    turned = tool({"type": "object", "properties": {"key": {"type": "string"}}})

    assert (await gate.decide(turned, {})).allowed is again
    assert [question.has_changed for question in user.asked] == [False, True]


async def test_a_refusal_revokes_an_earlier_grant():
    user = ScriptedUser(PermissionAnswer(True, for_session=True), False, True)
    gate = gate_of("default", user, EventBus())
    await gate.decide(TOOL, {})
    turned = tool({"type": "object", "maxProperties": 3})

    assert not (await gate.decide(turned, {})).allowed
    assert (await gate.decide(TOOL, {})).allowed
    assert len(user.asked) == 3


async def test_a_grant_ends_with_the_entry_it_was_given_for():
    user = ScriptedUser(PermissionAnswer(True, for_session=True))
    gate = gate_of("default", user, EventBus())
    for server in ("box", "other"):
        await gate.decide(tool(server=server), {})
    gate.forget("box")
    for server in ("box", "other"):
        await gate.decide(tool(server=server), {})

    assert [question.server for question in user.asked] == ["box", "other", "box"]


async def test_a_grant_for_a_built_in_tool_covers_the_asked_arguments():
    async def read(arguments: object) -> str:
        return "read"

    user = ScriptedUser(PermissionAnswer(True, for_session=True))
    gate = gate_of("default", user, EventBus())
    builtin = BuiltinTool("read", read, description="", input_schema={"type": "object"})
    for server in ("a", "b"):
        await gate.decide(builtin, {"server": server})

    assert [question.arguments["server"] for question in user.asked] == ["a", "b"]


@pytest.mark.requirement("PRM-3")
@pytest.mark.parametrize("scope", ["user", "local"])
async def test_a_permanent_grant_is_written_as_the_shown_rule(scope: Any):
    KEPT.clear()
    user = ScriptedUser(PermissionAnswer(True, always=scope))
    gate = gate_of("default", user, EventBus())

    assert (await gate.decide(TOOL, {})).allowed
    assert [(scope, user.asked[0].rule)] == KEPT
    assert (await gate.decide(TOOL, {})).by == "grant", "it holds at once, written or not"
    assert len(user.asked) == 1


async def test_with_an_ask_rule_every_call_is_asked_about_and_no_grant_is_kept():
    KEPT.clear()
    user = ScriptedUser(PermissionAnswer(True, for_session=True, always="user"))
    gate = gate_of("bypassPermissions", user, EventBus(), ask=("mcp__box",))

    for _ in range(2):
        assert (await gate.decide(TOOL, {})).allowed
    assert [question.is_rememberable for question in user.asked] == [False, False]
    assert KEPT == []


async def test_one_question_is_asked_at_a_time_and_its_answer_applies_to_waiting_calls():
    class Slow(ScriptedUser):
        async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
            self.most = max(getattr(self, "most", 0), len(self.asked) - getattr(self, "done", 0) + 1)
            await asyncio.sleep(0)
            answer = await super().allow(question)
            self.done = len(self.asked)
            return answer

    user = Slow(PermissionAnswer(True, for_session=True))
    gate = gate_of("default", user, EventBus())
    decisions = await asyncio.gather(*(gate.decide(TOOL, {"n": number}) for number in range(20)))

    assert all(decision.allowed for decision in decisions)
    assert (len(user.asked), user.most) == (1, 1)


async def test_an_interaction_may_call_tools_without_a_deadlock():
    class Curious:
        depth = 0

        async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
            self.depth += 1
            if self.depth < 3:
                async with asyncio.timeout(5):
                    return PermissionAnswer((await gate.decide(TOOL, {"n": self.depth})).allowed)
            return PermissionAnswer(True)

    gate = gate_of("default", Curious(), EventBus())

    assert (await gate.decide(TOOL, {})).allowed


async def test_a_failing_interaction_is_a_refusal():
    class Broken:
        async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
            raise RuntimeError("no screen")

    decision = await gate_of("default", Broken(), EventBus()).decide(TOOL, {})

    assert not decision.allowed
    assert "no screen" in decision.reason


async def test_changed_rules_apply_to_the_next_call():
    gate = gate_of("default", None, EventBus(), allow=("mcp__box",))
    assert (await gate.decide(TOOL, {})).by == "rule"
    gate.adopt(Rulebook.of([("enterprise", "managed", PermissionRules(deny=("mcp__box__open",)))]), "default")
    decision = await gate.decide(TOOL, {})

    assert not decision.allowed
    assert decision.rule is not None
    assert decision.rule.source == "managed"


async def test_an_allow_for_the_session_after_the_entry_changed_grants_nothing():
    class Late(ScriptedUser):
        async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
            answer = await super().allow(question)
            checker.forget("box")
            return answer

    user = Late(PermissionAnswer(True, for_session=True))
    checker = gate_of("default", user, EventBus())
    for _ in range(2):
        assert (await checker.decide(TOOL, ARGUMENTS)).allowed

    assert len(user.asked) == 2
