"""Patterns with `*`."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.wildcards import fits
from tests.cpu_time import CpuTimer


@given(st.lists(st.text("ab", max_size=3), min_size=1, max_size=5), st.text("ab", max_size=8))
def test_the_matcher_agrees_with_a_search_by_trial(pieces: list[str], text: str):
    def slowly(rest: list[str], text: str) -> bool:
        if len(rest) == 1:
            return text.endswith(rest[0])
        tails = (text[at:] for at in range(len(text) + 1))
        return any(tail.startswith(rest[0]) and slowly(rest[1:], tail[len(rest[0]) :]) for tail in tails)

    first, *others = pieces
    expected = text == first
    if others:
        expected = text.startswith(first) and slowly(["", *others], text[len(first) :])
    assert fits(tuple(pieces), text) == expected


def test_a_pattern_with_many_wildcards_is_fast():
    pieces = tuple(("*a" * 2000 + "*b").split("*"))
    began = CpuTimer()
    assert not fits(pieces, "a" * 100_000)
    assert began.seconds() < 0.5
