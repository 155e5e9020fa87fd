"""Functions as hooks, at every point."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from dragoman.events import HookReported
from dragoman.hooks.active import REMEMBERED_NAMES, ActiveHooks, HookSession
from dragoman.hooks.declared import Hook, UnusableHook, hook
from dragoman.hooks.events import EVENTS
from dragoman.hooks.merging import After, Before, Submitted
from dragoman.hooks.verdicts import HookDecision
from dragoman.interaction import FormAnswer
from dragoman.permissions.checker import names_of
from tests.unit.fakes import no_hooks, tool
from tests.unit.hooks import guide

TOOL = tool(server="gh", name="list")


class Desk:
    """Hooks, and what was told of them."""

    def __init__(self, *hooks: Hook) -> None:
        self.reports: list[tuple[str, str, str]] = []
        self.said: list[tuple[str, str, str]] = []
        self.hooks = ActiveHooks(
            hooks,
            HookSession("s1", "/", lambda: "default"),
            names_of,
            self._reported,
        )

    def _reported(self, report: HookReported) -> None:
        told = (report.hook, report.event, report.text)
        (self.reports if report.is_failure else self.said).append(told)


def pre(function: Callable[[dict[str, Any]], Any], **more: Any) -> Hook:
    return hook(function, "PreToolUse", name=more.pop("name", "h"), **more)


def answering(**specific: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda given: {"hookSpecificOutput": specific}


async def ask_all(hooks: ActiveHooks) -> list[Any]:
    """Every event there is, once."""
    answers: list[Any] = [
        await hooks.before_call(TOOL, {"a": 1}),
        await hooks.after_call(TOOL, {"a": 1}, "text", is_error=False),
        await hooks.after_call(TOOL, {"a": 1}, "text", is_error=True, error_code="timeout"),
        await hooks.permission_requested(TOOL, {"a": 1}),
        await hooks.elicited("gh", "who?", {"type": "object"}),
        await hooks.elicitation_answered("gh", FormAnswer("accept", {"a": 1})),
        await hooks.prompt_submitted("Hi"),
        await hooks.stopping("Stop", STOPPING),
        await hooks.stopping("SubagentStop", {**SUBAGENT, **STOPPING}),
    ]
    for event, facts in TOLD.items():
        answers.append(await hooks.notify(event, facts))
    return answers


SUBAGENT = {"agent_id": "1", "agent_type": "reviewer", "agent_transcript_path": "/x/1.jsonl"}
TOLD: Mapping[str, Mapping[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "SessionEnd": {"reason": "other"},
    "PreCompact": {"trigger": "auto", "custom_instructions": ""},
    "Notification": {"message": "m", "title": "t", "notification_type": "permission_prompt"},
    "ServerConnected": {"mcp_server_name": "gh", "protocol_version": "2025-11-25"},
    "ServerFailed": {"mcp_server_name": "gh", "reason": "r", "hint": None},
    "NeedsAuth": {"mcp_server_name": "gh", "reason": "r"},
    "ToolsChanged": {"mcp_server_name": "gh", "tool_count": 1, "changed": [], "problems": []},
}
STOPPING = {"stop_hook_active": False, "last_assistant_message": "Done."}
NOTHING = [
    *(
        Before({"a": 1}),
        After(),
        After(),
        None,
        None,
        FormAnswer("accept", {"a": 1}),
        Submitted(),
        None,
        None,
    ),
    *[()] * len(TOLD),
]


async def test_without_hooks_nothing_changes():
    hooks = no_hooks()
    assert await ask_all(hooks) == NOTHING
    assert not hooks.wants("PreToolUse", TOOL.name)
    await hooks.close()


async def test_hooks_without_an_answer_change_nothing():
    desk = Desk(*(hook(lambda given: None, event) for event in EVENTS))
    assert await ask_all(desk.hooks) == NOTHING
    assert desk.reports == []


@pytest.mark.requirement("PRM-5")
async def test_each_event_gives_exactly_the_documented_fields():
    seen: dict[str, dict[str, Any]] = {}

    def see(given: dict[str, Any]) -> None:
        seen[given["hook_event_name"]] = given

    desk = Desk(*(hook(see, event) for event in EVENTS))
    await ask_all(desk.hooks)
    common, described = guide.sections()["Every event"].given, guide.sections()
    documented = {name: {*common, *described[name].given} for name in EVENTS}
    assert {event: set(given) for event, given in seen.items()} == documented
    for event, given in seen.items():
        assert (EVENTS[event] or "session_id") in given
        assert (given["session_id"], given["cwd"], given["permission_mode"]) == ("s1", "/", "default")


@pytest.mark.requirement("PRM-5")
async def test_a_hook_can_allow_deny_ask_change_and_add():
    specific = {
        "permissionDecision": "allow",
        "permissionDecisionReason": "fine",
        "updatedInput": {"a": 2},
        "additionalContext": "mind the gap",
    }
    before = await Desk(pre(answering(**specific))).hooks.before_call(TOOL, {"a": 1})
    assert before == Before({"a": 2}, HookDecision("allow", "fine", "h"), ("mind the gap",))
    for behaviour in ("ask", "deny"):
        before = await Desk(pre(answering(permissionDecision=behaviour))).hooks.before_call(TOOL, {})
        assert before.hook_decision is not None
        assert before.hook_decision.behaviour == behaviour


async def test_coroutine_hooks_run_concurrently():
    met = asyncio.Barrier(2)

    async def meet(given: dict[str, Any]) -> dict[str, Any]:
        await met.wait()
        return {"hookSpecificOutput": {"additionalContext": "met"}}

    async def meet_too(given: dict[str, Any]) -> dict[str, Any]:
        return await meet(given)

    before = await Desk(pre(meet), pre(meet_too)).hooks.before_call(TOOL, {})
    assert before.context == ("met", "met")


async def test_answers_keep_the_declared_order_however_long_they_take():
    async def slowly(given: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"hookSpecificOutput": {"additionalContext": "1"}}

    before = await Desk(pre(slowly), pre(answering(additionalContext="2"))).hooks.before_call(TOOL, {})
    assert before.context == ("1", "2")


@pytest.mark.requirement("PRM-5")
async def test_the_same_function_runs_once_with_the_stricter_settings():
    calls: list[str] = []

    def count(given: dict[str, Any]) -> None:
        calls.append(given["tool_name"])
        raise ValueError("no")

    desk = Desk(pre(count), pre(count, matcher="mcp__gh__*", blocks_on_error=True), pre(count, matcher="x"))
    before = await desk.hooks.before_call(TOOL, {})
    assert calls == [TOOL.name]
    assert before.hook_decision is not None
    assert before.hook_decision.behaviour == "deny"


async def test_only_hooks_with_a_matching_matcher_run():
    desk = Desk(pre(answering(permissionDecision="deny"), matcher="mcp__db__*"))
    assert not desk.hooks.wants("PreToolUse", TOOL.name)
    assert desk.hooks.wants("PreToolUse", "mcp__db__query")
    assert not desk.hooks.wants("PostToolUse", "mcp__db__query")
    assert (await desk.hooks.before_call(TOOL, {})).hook_decision is None


async def test_matchers_of_connection_events_match_the_servers_name():
    seen: list[str] = []
    desk = Desk(hook(lambda given: seen.append(given["mcp_server_name"]), "ServerFailed", matcher="db|x*"))
    for server in ("db", "gh", "x1"):
        await desk.hooks.notify("ServerFailed", {"mcp_server_name": server, "reason": "r", "hint": None})
    assert seen == ["db", "x1"]


def raising(given: dict[str, Any]) -> None:
    raise RuntimeError("\x1b[31mboom")


async def raising_later(given: dict[str, Any]) -> None:
    await asyncio.sleep(0)
    raise TimeoutError("its own")


async def hanging(given: dict[str, Any]) -> None:
    await asyncio.Event().wait()


async def cancelling(given: dict[str, Any]) -> None:
    raise asyncio.CancelledError


class Odd:
    async def __call__(self, given: dict[str, Any]) -> str:
        return "yes"


FAILURES: list[tuple[Any, str]] = [
    (raising, r"it raised RuntimeError: \x1b[31mboom"),
    (raising_later, "it raised TimeoutError: its own"),
    (hanging, "it took longer than 0.01 s"),
    (cancelling, "it was cancelled"),
    (lambda given: "yes", "it returned str, not a dict or None"),
    (Odd(), "it returned str, not a dict or None"),
    (lambda given: {"hookSpecificOutput": {"updatedInput": [1]}}, '"updatedInput" must be an object'),
]


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize(("function", "problem"), FAILURES)
async def test_a_failing_function_is_reported_and_blocks_only_with_on_error_block(
    function: Any, problem: str
):
    desk = Desk(pre(function, timeout_seconds=0.01))
    assert await desk.hooks.before_call(TOOL, {}) == Before({})
    assert desk.reports == [("h", "PreToolUse", problem)]

    desk = Desk(pre(function, timeout_seconds=0.01, blocks_on_error=True))
    before = await desk.hooks.before_call(TOOL, {})
    assert before.hook_decision == HookDecision(
        "deny", "the hook h failed, and what it watches is refused until it works", "h"
    )


async def test_a_failing_blocking_hook_blocks_at_every_event():
    stand_ins = [
        Hook(event=event, what=UnusableHook("why"), name="h", blocks_on_error=True) for event in EVENTS
    ]
    desk = Desk(*stand_ins)
    before, after, after_error, requested, elicited, answered, *others = await ask_all(desk.hooks)
    submitted, stopping, subagent_stopping, *told = others
    assert before.hook_decision.behaviour == "deny"
    assert "withheld" in after.replacement
    assert "withheld" in after_error.replacement
    assert requested.behaviour == "deny"
    assert elicited == FormAnswer("decline")
    assert answered == FormAnswer("decline")
    assert "failed" in submitted.refusal
    assert (stopping, subagent_stopping) == (None, None), "a broken hook does not keep a model working"
    assert told == [()] * len(TOLD)
    assert len(desk.reports) == len(EVENTS)


async def test_a_function_cannot_change_arguments_in_place():
    def meddle(given: dict[str, Any]) -> None:
        given["tool_input"]["a"] = 666
        given["tool_name"] = "other"

    seen: list[Any] = []
    desk = Desk(pre(meddle), pre(lambda given: seen.append((given["tool_name"], given["tool_input"]))))
    arguments = {"a": 1}
    before = await desk.hooks.before_call(TOOL, arguments)
    assert before.arguments is arguments
    assert arguments == {"a": 1}
    assert seen == [(TOOL.name, {"a": 1})]


async def test_the_system_message_of_a_hook_is_passed_on():
    desk = Desk(pre(lambda given: {"systemMessage": "hello"}))
    await desk.hooks.before_call(TOOL, {})
    assert desk.said == [("h", "PreToolUse", "hello")]


async def test_conflicting_changes_are_reported():
    desk = Desk(
        pre(answering(updatedInput={"a": 2}), name="one"), pre(answering(updatedInput={"a": 3}), name="two")
    )
    assert (await desk.hooks.before_call(TOOL, {"a": 1})).arguments == {"a": 3}
    assert desk.reports == [("two", "PreToolUse", "its changed arguments replace those of one")]


async def test_results_and_errors_have_separate_events():
    desk = Desk(
        hook(answering(updatedMCPToolOutput="good"), "PostToolUse"),
        hook(answering(updatedMCPToolOutput="bad", additionalContext="c"), "PostToolUseFailure"),
    )
    assert await desk.hooks.after_call(TOOL, {}, "x", is_error=False) == After((), "good")
    assert await desk.hooks.after_call(TOOL, {}, "x", is_error=True) == After(("c",), "bad")


async def test_a_hook_answers_a_question_instead_of_the_person():
    desk = Desk(
        hook(answering(decision={"behavior": "allow", "message": "ok"}), "PermissionRequest", name="h"),
        hook(answering(action="accept", content={"who": "me"}), "Elicitation"),
        hook(answering(content={"who": "you"}), "ElicitationResult"),
    )
    assert await desk.hooks.permission_requested(TOOL, {}) == HookDecision("allow", "ok", "h")
    assert await desk.hooks.elicited("gh", "who?", {}) == FormAnswer("accept", {"who": "me"})
    answer = await desk.hooks.elicitation_answered("gh", FormAnswer("accept", {"who": "me"}))
    assert answer == FormAnswer("accept", {"who": "you"})


async def test_the_start_of_a_session_may_have_context():
    desk = Desk(hook(answering(additionalContext="be kind"), "SessionStart"))
    assert await desk.hooks.notify("SessionStart", {"source": "startup"}) == ("be kind",)


async def test_hooks_can_be_replaced():
    desk = Desk(pre(answering(permissionDecision="deny")))
    assert desk.hooks.wants("PreToolUse", TOOL.name)
    desk.hooks.replace([])
    assert not desk.hooks.wants("PreToolUse", TOOL.name)


async def test_cancelling_a_call_cancels_its_hooks():
    started, ended = asyncio.Event(), asyncio.Event()

    async def long(given: dict[str, Any]) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    call = asyncio.create_task(Desk(pre(long)).hooks.before_call(TOOL, {}))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert ended.is_set()


async def test_closing_cancels_running_hooks_and_starts_none():
    started = asyncio.Event()

    async def long(given: dict[str, Any]) -> None:
        started.set()
        await asyncio.Event().wait()

    desk = Desk(pre(long, blocks_on_error=True))
    call = asyncio.create_task(desk.hooks.before_call(TOOL, {}))
    await started.wait()
    await desk.hooks.close()
    before = await call
    assert before.hook_decision is not None
    assert before.hook_decision.behaviour == "deny"
    before = await desk.hooks.before_call(TOOL, {})
    assert before.hook_decision is not None
    assert desk.reports[-1] == ("h", "PreToolUse", "the host is closing")


async def test_a_coroutine_cancelled_before_its_start_causes_no_warning():
    async def never(given: dict[str, Any]) -> None:
        raise AssertionError

    async def never_either(given: dict[str, Any]) -> None:
        raise AssertionError

    desk = Desk(pre(never), pre(never_either))
    call = asyncio.create_task(desk.hooks.before_call(TOOL, {}))
    closing = asyncio.create_task(desk.hooks.close())
    await asyncio.wait({call, closing})
    assert desk.reports == [("h", "PreToolUse", "it was cancelled")] * 2


async def test_a_keyboard_interrupt_is_not_caught():
    async def interrupt(given: dict[str, Any]) -> None:
        raise ZeroDivisionError

    def interrupted(given: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await Desk(pre(interrupt), pre(interrupted)).hooks.before_call(TOOL, {})


async def test_names_chosen_by_servers_do_not_fill_the_memory():
    desk = Desk(pre(answering()))
    for number in range(REMEMBERED_NAMES + 10):
        desk.hooks.wants("PreToolUse", f"mcp__gh__{number}")
    assert len(desk.hooks._concerned) <= REMEMBERED_NAMES


@pytest.mark.parametrize(
    ("answer", "submitted"),
    [
        ({"decision": "block", "reason": "no names"}, Submitted("no names")),
        ({"continue": False, "stopReason": "not now"}, Submitted("not now")),
        (
            {"hookSpecificOutput": {"additionalContext": "It is Monday."}},
            Submitted(context=("It is Monday.",)),
        ),
        ({"decision": "approve"}, Submitted()),
        ({"suppressOutput": True}, Submitted()),
    ],
)
async def test_a_hook_refuses_a_prompt_or_adds_to_it(answer: dict[str, Any], submitted: Submitted):
    desk = Desk(hook(lambda given: answer, "UserPromptSubmit"))
    assert await desk.hooks.prompt_submitted("Hi") == submitted
    assert desk.reports == []


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([{"decision": "block", "reason": "the tests fail"}], "the tests fail"),
        ([{"decision": "approve"}], None),
        ([{"continue": False, "stopReason": "enough"}], None),
        ([{"decision": "block", "reason": "more"}, {"continue": False}], None),
        ([{"continue": False, "decision": "block", "reason": "more"}], None),
        ([{"Continue": False}], None),
        (["done: {'continue': False}"], None),
    ],
)
async def test_a_hook_makes_the_model_continue_unless_another_stops_it(
    answers: list[Any], reason: str | None
):
    hooks = [hook(lambda given, answer=answer: answer, "Stop") for answer in answers]
    assert await Desk(*hooks).hooks.stopping("Stop", STOPPING) == reason


async def test_a_matcher_of_an_event_without_one_has_no_effect():
    desk = Desk(hook(lambda given: {"decision": "block", "reason": "r"}, "Stop", matcher="Bash"))
    assert await desk.hooks.stopping("Stop", STOPPING) == "r"


async def test_the_reason_of_a_refusal_without_effect_is_shown_to_the_person():
    desk = Desk(hook(lambda given: {"decision": "block", "reason": "keep the plan"}, "PreCompact", name="h"))
    await desk.hooks.notify("PreCompact", {"trigger": "auto", "custom_instructions": ""})
    assert desk.said == [("h", "PreCompact", "keep the plan")]


async def test_hooks_of_a_conversation_are_given_its_id_and_its_file():
    seen: list[Any] = []
    desk = Desk(pre(lambda given: seen.append((given["session_id"], given["transcript_path"]))))
    await desk.hooks.before_call(TOOL, {})
    desk.hooks.enter_conversation("c1", "/x/c1.jsonl")
    await desk.hooks.before_call(TOOL, {})
    assert seen == [("s1", ""), ("c1", "/x/c1.jsonl")]
