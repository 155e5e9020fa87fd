"""What several hooks come to."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.hooks import merging, verdicts
from dragoman.hooks.verdicts import HookAnswer, HookDecision
from dragoman.interaction import FormAnswer

ARGUMENTS = {"a": 1}


def says(hook: str = "h", **more: Any) -> HookAnswer:
    return HookAnswer(hook=hook, **more)


def word(*answers: HookAnswer) -> HookDecision | None:
    return merging.before(ARGUMENTS, answers)[0].hook_decision


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize(
    ("behaviours", "expected"),
    [
        ((), None),
        ((None,), None),
        (("allow",), "allow"),
        (("allow", None), "allow"),
        (("allow", "ask"), "ask"),
        (("allow", "ask", "deny", None), "deny"),
    ],
)
def test_the_strictest_decision_applies_in_any_order(behaviours: tuple[Any, ...], expected: str | None):
    for order in permutations(behaviours):
        found = word(*(says(behaviour=each) for each in order))
        assert (found.behaviour if found else None) == expected


def test_among_equal_decisions_the_administrators_hook_applies_then_the_first():
    first, second = says("one", behaviour="deny", reason="1"), says("two", behaviour="deny", reason="2")
    managed = says("three", behaviour="deny", reason="3", is_managed=True)
    assert word(first, second) == HookDecision("deny", "1", "one")
    assert word(first, second, managed) == HookDecision("deny", "3", "three", is_managed=True)


def test_a_decision_without_a_reason_gets_one():
    found = word(says(behaviour="deny"))
    assert found is not None
    assert found.reason == "a hook refuses it"


def test_unchanged_arguments_are_the_same_object():
    assert merging.before(ARGUMENTS, [says(context="x")])[0].arguments is ARGUMENTS


def test_the_last_change_applies_and_a_conflict_is_reported():
    answers = [says("one", updated_input={"a": 2}), says("two", updated_input={"a": 3})]
    before, conflicts = merging.before(ARGUMENTS, answers)
    assert before.arguments == {"a": 3}
    assert conflicts == [merging.Conflict("two", "its changed arguments replace those of one")]


def test_two_equal_changes_do_not_conflict():
    answers = [says("one", updated_input={"a": 2, "b": 1}), says("two", updated_input={"b": 1, "a": 2})]
    assert merging.before(ARGUMENTS, answers)[1] == []


def test_true_is_not_one():
    answers = [says("one", updated_input={"a": 1}), says("two", updated_input={"a": True})]
    before, conflicts = merging.before(ARGUMENTS, answers)
    assert before.arguments["a"] is True
    assert conflicts


def test_an_allow_does_not_apply_to_arguments_its_hook_did_not_get():
    answers = [says("one", behaviour="allow"), says("two", updated_input={"a": 666})]
    assert word(*answers) is None


def test_an_allow_applies_to_the_arguments_its_hook_returned():
    found = word(says("one", behaviour="allow", updated_input={"a": 2}))
    assert found == HookDecision("allow", "a hook allows it", "one")


def test_an_allow_still_applies_after_a_change_without_effect():
    found = word(says("one", behaviour="allow"), says("two", updated_input={"a": 1}))
    assert found is not None
    assert found.behaviour == "allow"


def test_a_deny_applies_to_any_later_arguments():
    found = word(says("one", behaviour="deny"), says("two", updated_input={"a": 2}))
    assert found is not None
    assert found.behaviour == "deny"


def test_arguments_that_are_not_json_never_count_as_equal():
    odd = {"a": "\ud800"}
    assert word(says("one", behaviour="allow"), says("two", updated_input=odd)) is None


def test_contexts_are_in_declared_order():
    before, _ = merging.before(ARGUMENTS, [says(context="1"), says(), says(context="2")])
    assert before.context == ("1", "2")


def test_a_deny_after_the_call_is_only_reported():
    after, _ = merging.after([says(behaviour="deny", reason="too late", context="c")])
    assert after.context == ("c", "too late")
    assert after.replacement is None


def test_the_last_replacement_applies_and_a_conflict_is_reported():
    after, conflicts = merging.after([says("one", replacement="1"), says("two", replacement="")])
    assert after.replacement == ""
    assert conflicts == [merging.Conflict("two", "its text replaces that of one")]


def test_a_result_is_withheld_if_a_blocking_hook_failed():
    failed = verdicts.failed("check", "exit code 1: secret", blocks=True)
    after, _ = merging.after([failed, says("two", replacement="the result")])
    assert after.replacement is not None
    assert after.replacement.startswith("[the result is withheld: the hook check failed")
    assert after.context == ()


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([], None),
        ([says()], None),
        ([says(content={"a": 1})], None),
        ([says(action="accept", content={"a": 1})], FormAnswer("accept", {"a": 1})),
        ([says(action="accept")], FormAnswer("accept")),
        ([says(action="accept"), says(action="cancel")], FormAnswer("cancel")),
        ([says(action="decline"), says(action="cancel")], FormAnswer("decline")),
        ([says(behaviour="deny"), says(action="accept")], FormAnswer("decline")),
        ([says(action="accept", content={"a": 1}), says(action="accept", content={"a": 2})],
         FormAnswer("accept", {"a": 2})),
    ],
)  # fmt: skip
def test_a_question_gets_the_strictest_answer(answers: list[HookAnswer], expected: FormAnswer | None):
    assert merging.elicited(answers)[0] == expected


def test_two_different_answers_are_reported():
    answers = [says("one", action="accept", content={"a": 1}), says("two", action="accept", content={"a": 2})]
    assert merging.elicited(answers)[1] == [merging.Conflict("two", "its answer replaces that of one")]


YES, NO = FormAnswer("accept", {"a": 1}), FormAnswer("decline")


@pytest.mark.parametrize(
    ("answer", "answers", "expected"),
    [
        (YES, [], YES),
        (YES, [says()], YES),
        (YES, [says(content={"a": 2})], FormAnswer("accept", {"a": 2})),
        (YES, [says(action="decline")], NO),
        (YES, [says(action="cancel")], FormAnswer("cancel")),
        (YES, [says(behaviour="deny")], NO),
        (NO, [says(action="accept", content={"a": 2})], NO),
        (FormAnswer("cancel"), [says(action="accept")], FormAnswer("cancel")),
        (NO, [says(action="cancel")], NO),
    ],
)
def test_an_answer_may_be_changed_or_withheld(
    answer: FormAnswer, answers: list[HookAnswer], expected: FormAnswer
):
    assert merging.elicitation_answered(answer, answers)[0] == expected


def test_a_hook_that_accepts_a_declined_question_is_reported():
    _, conflicts = merging.elicitation_answered(NO, [says("h", action="accept")])
    assert conflicts == [merging.Conflict("h", "it cannot accept what was not accepted")]


ANSWERS = st.lists(
    st.builds(
        HookAnswer,
        hook=st.sampled_from("xyz"),
        is_managed=st.booleans(),
        behaviour=st.sampled_from([None, "allow", "ask", "deny"]),
        updated_input=st.none() | st.dictionaries(st.sampled_from("ab"), st.integers(0, 1), max_size=2),
        action=st.sampled_from([None, "accept", "decline", "cancel"]),
    ),
    max_size=5,
)


@given(ANSWERS)
def test_one_deny_denies_and_only_explicit_allows_allow(answers: list[HookAnswer]):
    found = word(*answers)
    if any(answer.behaviour == "deny" for answer in answers):
        assert found is not None
        assert found.behaviour == "deny"
    if found is not None and found.behaviour == "allow":
        assert {answer.behaviour for answer in answers} <= {"allow", None}


@given(ANSWERS)
def test_nothing_is_accepted_against_a_deny(answers: list[HookAnswer]):
    assert merging.elicitation_answered(NO, answers)[0].action == "decline"
