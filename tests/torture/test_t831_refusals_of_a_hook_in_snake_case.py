"""T831: a refusal or a question in the answer of a hook counts also with `_` or `-` in its key, as programs
in Python write it. It was passed over without a report, an administrator's too.
So was a refusal in another word (`denied`, `rejected`) where the hook does not block on errors."""

from typing import Any

import pytest

from dragoman.hooks.verdicts import HookAnswer, read

pytestmark = pytest.mark.requirement("PRM-5")


def answer(document: Any, **options: bool) -> HookAnswer:
    return read("PreToolUse", "h", document, **options)


@pytest.mark.parametrize(
    "key", ["permission_decision", "Permission_Decision", "permission-decision", "permission decision"]
)
@pytest.mark.parametrize("value", ["deny", "ask", "DENY"])
@pytest.mark.parametrize("place", ["hookSpecificOutput", "hook_specific_output", None])
@pytest.mark.parametrize("blocks", [False, True])
def test_t831_it_counts(key: str, value: str, place: str | None, blocks: bool):
    said = {key: value}
    found = answer({place: said} if place else said, blocks=blocks)
    assert found.behaviour == ("deny" if blocks else value.lower())
    assert found.problems[-1].startswith("it asks" if value == "ask" else "it refuses")


def test_t831_an_allow_does_not():
    assert answer({"hookSpecificOutput": {"permission_decision": "allow"}}).behaviour is None


@pytest.mark.parametrize("key", ["updatedInput", "updated_input", "updated-Input"])
def test_t831_arguments_that_a_hook_passes_on_are_no_decision(key: str):
    found = answer({"hookSpecificOutput": {key: {"permission_decision": "deny", "decision": "block"}}})
    assert found.behaviour is None


@pytest.mark.parametrize("word", ["denied", "Blocked", "reject", "rejected", "refused", "forbidden", "no"])
@pytest.mark.parametrize("place", ["decision", "permissionDecision"])
def test_t831_another_word_for_a_refusal_refuses(word: str, place: str):
    document = {"decision": word} if place == "decision" else {"hookSpecificOutput": {place: word}}
    found = answer(document)
    assert (found.behaviour, found.problems[-1]) == (
        "deny",
        "it refuses in an invalid form; taken as a refusal",
    )


@pytest.mark.parametrize("word", ["allowed", "yes", "maybe"])
def test_t831_other_words_decide_nothing(word: str):
    assert answer({"decision": word}).behaviour is None
