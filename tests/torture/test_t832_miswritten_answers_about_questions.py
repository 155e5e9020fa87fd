"""T832: what a hook answers to a question of a server in other spellings is no consent: `"Action": "decline"`
declines, and with `"Content"` a hook that blocks on errors blocks. What the person typed was sent as it was,
and that was not reported, an administrator's hook included."""

from typing import Any

import pytest

from dragoman.hooks.verdicts import read

pytestmark = pytest.mark.requirement("PRM-5")
EVENTS = ("Elicitation", "ElicitationResult")
DECLINES = [
    {"hookSpecificOutput": {"Action": "decline"}},
    {"hookSpecificOutput": {"action": "Decline"}},
    {"hook_specific_output": {"action": "decline"}},
    {"ACTION": "decline "},
    {"action": "decline"},
]
CHANGES = [
    {"hookSpecificOutput": {"Content": {"name": "[removed]"}}},
    {"hookSpecificOutput": {"action": "accept", "Content": {"name": "[removed]"}}},
    {"Content": {"name": "[removed]"}},
]


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("document", DECLINES, ids=str)
def test_t832_a_decline_declines(event: str, document: dict[str, Any]):
    found = read(event, "h", document)
    assert (found.action, found.behaviour) == ("decline", None)
    assert found.problems != ()


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("document", CHANGES, ids=str)
def test_t832_other_values_that_cannot_be_read_are_reported_and_block(event: str, document: dict[str, Any]):
    assert read(event, "h", document, blocks=True).behaviour == "deny"
    found = read(event, "h", document)
    assert (found.action, found.content) == (None, None)
    assert found.problems == ('"Content" has to be spelled as in the documentation',)


@pytest.mark.parametrize("event", EVENTS)
def test_t832_an_accept_in_another_spelling_has_no_effect(event: str):
    found = read(event, "h", {"hookSpecificOutput": {"Action": "accept", "content": {"name": "x"}}})
    assert (found.action, found.content) == (None, None)


@pytest.mark.parametrize("event", EVENTS)
def test_t832_values_of_a_form_are_no_action(event: str):
    content = {"action": "decline", "Action": "cancel"}
    found = read(event, "h", {"hookSpecificOutput": {"action": "accept", "content": content}})
    assert (found.action, found.content, found.problems) == ("accept", content, ())
