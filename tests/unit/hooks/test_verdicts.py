"""What one hook says, read with care."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.hooks import verdicts
from dragoman.hooks.events import EVENTS
from dragoman.hooks.verdicts import HookAnswer, read

DENY = {"behaviour": "deny", "ends": True}


def pre(**specific: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **specific}}


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize(
    ("event", "document", "expected"),
    [
        ("PreToolUse", {}, {}),
        ("PreToolUse", pre(permissionDecision="allow"), {"behaviour": "allow"}),
        (
            "PreToolUse",
            pre(permissionDecision="deny", permissionDecisionReason=" no "),
            {"behaviour": "deny", "reason": "no"},
        ),
        ("PreToolUse", pre(permissionDecision="ask"), {"behaviour": "ask"}),
        ("PreToolUse", pre(updatedInput={"a": 1}), {"updated_input": {"a": 1}}),
        ("PreToolUse", pre(additionalContext="hm"), {"context": "hm"}),
        ("PreToolUse", {"hookSpecificOutput": {"permissionDecision": "deny"}}, {"behaviour": "deny"}),
        ("PreToolUse", {"decision": "block", "reason": "no"}, {"behaviour": "deny", "reason": "no"}),
        ("PreToolUse", {"decision": "approve", "reason": "ok"}, {"behaviour": "allow", "reason": "ok"}),
        ("PreToolUse", {"continue": False, "stopReason": "no"}, {**DENY, "reason": "no"}),
        ("PreToolUse", {"continue": True}, {}),
        ("PreToolUse", {"continue": False, **pre(permissionDecision="allow")}, DENY),
        ("PreToolUse", {"decision": "block", **pre(permissionDecision="allow")}, {"behaviour": "deny"}),
        ("PreToolUse", {"decision": "approve", **pre(permissionDecision="ask")}, {"behaviour": "ask"}),
        ("PreToolUse", {"systemMessage": "hello", "unknown": 1}, {"message": "hello"}),
        ("PreToolUse", pre(updatedMCPToolOutput="x", action="accept"), {}),
        ("PostToolUse", {"hookSpecificOutput": {"updatedMCPToolOutput": "x"}}, {"replacement": "x"}),
        ("PostToolUse", {"hookSpecificOutput": {"updatedMCPToolOutput": ""}}, {"replacement": ""}),
        (
            "PostToolUse",
            {
                "hookSpecificOutput": {
                    "updatedMCPToolOutput": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
                }
            },
            {"replacement": "a\nb"},
        ),
        ("PostToolUse", {"decision": "block", "reason": "why"}, {"behaviour": "deny", "reason": "why"}),
        ("PostToolUseFailure", {"hookSpecificOutput": {"additionalContext": "c"}}, {"context": "c"}),
        (
            "PermissionRequest",
            {"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "no"}}},
            {"behaviour": "deny", "reason": "no"},
        ),
        (
            "PermissionRequest",
            {"hookSpecificOutput": {"decision": {"behavior": "allow"}}},
            {"behaviour": "allow"},
        ),
        (
            "Elicitation",
            {"hookSpecificOutput": {"action": "accept", "content": {"a": 1}}},
            {"action": "accept", "content": {"a": 1}},
        ),
        ("ElicitationResult", {"hookSpecificOutput": {"action": "cancel"}}, {"action": "cancel"}),
        ("SessionStart", {"hookSpecificOutput": {"additionalContext": "c"}}, {"context": "c"}),
        ("UserPromptSubmit", {"hookSpecificOutput": {"additionalContext": "c"}}, {"context": "c"}),
        ("SessionEnd", {"hookSpecificOutput": {"additionalContext": "c"}}, {}),
    ],
)
def test_how_an_answer_is_read(event: str, document: dict[str, Any], expected: dict[str, Any]):
    answer = read(event, "h", document)
    assert answer == HookAnswer(hook="h", **({"reason": ""} | expected))


@pytest.mark.parametrize(
    ("event", "document", "problem"),
    [
        ("PreToolUse", {"hookSpecificOutput": []}, '"hookSpecificOutput" must be an object'),
        ("PreToolUse", pre(permissionDecision="Allow"), "permissionDecision"),
        ("PreToolUse", pre(permissionDecision=1), "permissionDecision"),
        ("PreToolUse", pre(permissionDecision=[]), "permissionDecision"),
        ("PreToolUse", pre(updatedInput=[1]), '"updatedInput" must be an object'),
        ("PreToolUse", pre(updatedInput="x"), '"updatedInput" must be an object'),
        ("PreToolUse", pre(updatedInput={1: 2}), '"updatedInput" must be an object'),
        ("PreToolUse", pre(additionalContext=1), '"additionalContext" must be text'),
        ("PreToolUse", {"continue": "perhaps"}, '"continue"'),
        ("PreToolUse", {"decision": {}}, '"decision"'),
        ("PreToolUse", {"hookSpecificOutput": {"hookEventName": "PostToolUse"}}, "it answers PostToolUse"),
        ("PostToolUse", {"hookSpecificOutput": {"updatedMCPToolOutput": {}}}, "updatedMCPToolOutput"),
        (
            "PostToolUse",
            {"hookSpecificOutput": {"updatedMCPToolOutput": [{"type": "image"}]}},
            "updatedMCPToolOutput",
        ),
        ("PermissionRequest", {"hookSpecificOutput": {"decision": "allow"}}, '"decision" must be an object'),
        ("PermissionRequest", {"hookSpecificOutput": {"decision": {"behavior": "perhaps"}}}, "behavior"),
        (
            "PermissionRequest",
            {"hookSpecificOutput": {"decision": {"behavior": "allow", "updatedInput": {}}}},
            "updatedInput",
        ),
        ("Elicitation", {"hookSpecificOutput": {"action": "yes"}}, '"action"'),
        ("Elicitation", {"hookSpecificOutput": {"action": "accept", "content": []}}, '"content"'),
    ],
)
def test_an_unreadable_answer_is_reported_and_allows_and_changes_nothing(
    event: str, document: dict[str, Any], problem: str
):
    answer = read(event, "h", document)
    assert problem in answer.problems[0]
    assert (answer.behaviour, answer.updated_input, answer.replacement) == (None, None, None)
    assert (answer.action, answer.content) == (None, None)
    assert not answer.has_failed

    strict = read(event, "h", document, blocks=True)
    assert (strict.behaviour, strict.has_failed) == ("deny", True)


def test_an_allow_with_an_unreadable_change_allows_nothing():
    assert read("PreToolUse", "h", pre(permissionDecision="allow", updatedInput=1)).behaviour is None


@pytest.mark.parametrize("behaviour", ["deny", "ask"])
def test_a_deny_applies_even_if_the_rest_cannot_be_read(behaviour: str):
    document = pre(permissionDecision=behaviour, permissionDecisionReason="why", updatedInput=1)
    answer = read("PreToolUse", "h", document)
    assert (answer.behaviour, answer.reason) == (behaviour, "why")


def test_texts_for_models_are_cleaned_and_limited():
    answer = read(
        "PreToolUse",
        "h",
        {
            "systemMessage": "\x1b[31mred",
            **pre(
                permissionDecision="deny",
                permissionDecisionReason="\u202e" + "r" * 50_000,
                additionalContext="\x00" + "c" * 50_000,
            ),
        },
    )
    assert answer.message == "red"
    assert answer.reason.startswith("rrr")
    assert len(answer.reason) <= verdicts.REASON_LIMIT
    assert answer.context.startswith("ccc")
    assert len(answer.context) <= verdicts.CONTEXT_LIMIT


def test_the_reason_of_a_failure_does_not_contain_the_programs_output():
    answer = verdicts.failed("h", "exit code 1: token=abc", blocks=True)
    assert "token" in answer.problems[0]
    assert "token" not in answer.reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = (
    "permissionDecision",
    "updatedInput",
    "additionalContext",
    "updatedMCPToolOutput",
    "decision",
    "action",
)
FIELDS += ("content", "hookEventName", "permissionDecisionReason")
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "hookSpecificOutput": st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON,
        "decision": JSON,
        "continue": JSON,
        "reason": JSON,
        "stopReason": JSON,
        "systemMessage": JSON,
    },
)


@given(st.sampled_from(sorted(EVENTS)), DOCUMENTS, st.booleans())
def test_any_json_is_read_as_an_answer(event: str, document: dict[str, Any], blocks: bool):
    answer = read(event, "h", document, blocks=blocks)
    if answer.problems:
        assert answer.behaviour != "allow"
        assert answer.updated_input is None
        assert answer.has_failed == blocks
