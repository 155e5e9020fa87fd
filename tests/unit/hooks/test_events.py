"""The guide describes every event, with what its matcher looks at and what its hooks are given."""

import pytest

from dragoman.hooks.events import EVENTS
from tests.unit.hooks import guide


def test_the_guide_describes_every_event_in_order():
    assert list(guide.sections()) == ["Every event", *EVENTS]


@pytest.mark.requirement("PRM-5")
def test_every_required_event_exists():
    assert set(EVENTS) == {
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PermissionRequest",
        "Elicitation",
        "ElicitationResult",
        "SessionStart",
        "SessionEnd",
        "UserPromptSubmit",
        "Stop",
        "SubagentStop",
        "PreCompact",
        "Notification",
        "ServerConnected",
        "ServerFailed",
        "NeedsAuth",
        "ToolsChanged",
    }


def test_a_matcher_matches_a_documented_field():
    for event, section in guide.sections().items():
        assert section.matched == EVENTS.get(event, "")
        assert section.matched in {"", *section.given}


def test_the_fields_of_answers_are_in_the_guide():
    answers = {event: section.answers for event, section in guide.sections().items() if section.answers}
    context = ("additionalContext",)
    output = (*context, "updatedMCPToolOutput")
    assert answers == {
        "Every event": (
            *("decision", "reason", "continue", "stopReason", "suppressOutput", "systemMessage"),
            "hookSpecificOutput",
        ),
        "PreToolUse": ("permissionDecision", "permissionDecisionReason", "updatedInput", *context),
        "PostToolUse": output,
        "PostToolUseFailure": output,
        "PermissionRequest": ("decision.behavior", "decision.message"),
        "Elicitation": ("action", "content"),
        "ElicitationResult": ("action", "content"),
        "SessionStart": context,
        "UserPromptSubmit": context,
    }
