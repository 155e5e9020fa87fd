"""What fits a model's context, and what is kept of what does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.budget import ResultLimits, cut_to_fit, fits, head_of, tail_of
from dragoman.content.tokens import MOST_PER_CHARACTER, estimate

pytestmark = pytest.mark.requirement("CAL-7")

SMALL = ResultLimits(characters=1000, tokens=100, head_characters=300, tail_characters=100)


@pytest.mark.parametrize(
    ("text", "is_fit"),
    [
        ("", True),
        ("a" * 50, True),
        ("a" * 400, True),  # a hundred tokens, estimated at 0.22 each: 89
        ("a" * 1001, False),
        ("7" * 101, False),
        ("7" * 100, True),
    ],
)
def test_both_limits_apply(text: str, is_fit: bool):
    assert fits(text, SMALL) is is_fit


@given(st.text(max_size=50))
def test_no_text_has_more_tokens_than_the_bound_used_without_counting(text: str):
    assert estimate(text) <= MOST_PER_CHARACTER * len(text)


@given(st.text(st.sampled_from("a7é😀\n "), min_size=0, max_size=3000))
def test_the_kept_part_is_within_the_limits_and_from_the_text(text: str):
    head, tail = head_of(text, SMALL), tail_of(text, SMALL)

    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) <= 300
    assert len(tail) <= 100
    assert estimate(head) <= 50
    assert estimate(tail) <= 12


def test_a_cut_states_how_much_is_missing():
    assert cut_to_fit("a" * 2000, ResultLimits(characters=1000)) == "a" * 1000 + "… [1000 more characters]"
    assert cut_to_fit("a" * 10, ResultLimits(), 5).endswith("… [5 more characters]")
