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
def test_the_strictest_word_counts_in_any_order(behaviours: tuple[Any, ...], expected: str | None):
    for order in permutations(behaviours):
        found = word(*(says(behaviour=each) for each in order))
        assert (found.behaviour if found else None) == expected


def test_among_equals_the_administrators_hook_speaks_then_the_first():
    first, second = says("one", behaviour="deny", reason="1"), says("two", behaviour="deny", reason="2")
    managed = says("three", behaviour="deny", reason="3", is_managed=True)
    assert word(first, second) == HookDecision("deny", "1", "one")
    assert word(first, second, managed) == HookDecision("deny", "3", "three", is_managed=True)


def test_a_word_without_a_reason_gets_one():
    found = word(says(behaviour="deny"))
    assert found is not None
    assert found.reason == "a hook refuses it"


def test_unchanged_arguments_are_the_very_same():
    assert merging.before(ARGUMENTS, [says(context="x")])[0].arguments is ARGUMENTS


def test_the_last_change_wins_and_a_conflict_is_told():
    answers = [says("one", updated_input={"a": 2}), says("two", updated_input={"a": 3})]
    before, conflicts = merging.before(ARGUMENTS, answers)
    assert before.arguments == {"a": 3}
    assert conflicts == [merging.Conflict("two", "its changed arguments replace those of one")]


def test_two_that_want_the_same_do_not_conflict():
    answers = [says("one", updated_input={"a": 2, "b": 1}), says("two", updated_input={"b": 1, "a": 2})]
    assert merging.before(ARGUMENTS, answers)[1] == []


def test_true_is_not_one():
    answers = [says("one", updated_input={"a": 1}), says("two", updated_input={"a": True})]
    before, conflicts = merging.before(ARGUMENTS, answers)
    assert before.arguments["a"] is True
    assert conflicts


def test_an_allow_does_not_speak_for_arguments_its_hook_never_saw():
    answers = [says("one", behaviour="allow"), says("two", updated_input={"a": 666})]
    assert word(*answers) is None


def test_an_allow_speaks_for_the_arguments_its_own_hook_gave():
    found = word(says("one", behaviour="allow", updated_input={"a": 2}))
    assert found == HookDecision("allow", "a hook allows it", "one")


def test_an_allow_speaks_on_where_a_change_came_to_nothing():
    found = word(says("one", behaviour="allow"), says("two", updated_input={"a": 1}))
    assert found is not None
    assert found.behaviour == "allow"


def test_a_no_speaks_whatever_became_of_the_arguments():
    found = word(says("one", behaviour="deny"), says("two", updated_input={"a": 2}))
    assert found is not None
    assert found.behaviour == "deny"


def test_arguments_that_are_no_json_cannot_be_shown_to_be_the_same():
    odd = {"a": "\ud800"}
    assert word(says("one", behaviour="allow"), says("two", updated_input=odd)) is None


def test_contexts_stand_in_declared_order():
    before, _ = merging.before(ARGUMENTS, [says(context="1"), says(), says(context="2")])
    assert before.context == ("1", "2")


def test_after_a_call_a_no_is_only_told():
    after, _ = merging.after([says(behaviour="deny", reason="too late", context="c")])
    assert after.context == ("c", "too late")
    assert after.replacement is None


def test_the_last_replacement_wins_and_a_conflict_is_told():
    after, conflicts = merging.after([says("one", replacement="1"), says("two", replacement="")])
    assert after.replacement == ""
    assert conflicts == [merging.Conflict("two", "its text replaces that of one")]


def test_a_result_is_withheld_if_a_hook_that_must_not_fail_failed():
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
def test_a_question_is_answered_by_the_strictest(answers: list[HookAnswer], expected: FormAnswer | None):
    assert merging.elicited(answers)[0] == expected


def test_two_different_answers_are_told():
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
def test_an_answer_may_be_changed_or_held_back(
    answer: FormAnswer, answers: list[HookAnswer], expected: FormAnswer
):
    assert merging.elicitation_answered(answer, answers)[0] == expected


def test_a_hook_that_would_accept_what_was_declined_is_told_of():
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
def test_one_no_is_a_no_and_nobody_allows_who_did_not(answers: list[HookAnswer]):
    found = word(*answers)
    if any(answer.behaviour == "deny" for answer in answers):
        assert found is not None
        assert found.behaviour == "deny"
    if found is not None and found.behaviour == "allow":
        assert {answer.behaviour for answer in answers} <= {"allow", None}


@given(ANSWERS)
def test_nothing_is_accepted_against_a_no(answers: list[HookAnswer]):
    assert merging.elicitation_answered(NO, answers)[0].action == "decline"
