"""What text and tools cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.catalog.tokens import as_sent, cost_of, estimate
from tests.unit.fakes import tool

# Counted with the byte-pair tokenizer of SmolLM2 (49 152 tokens).
COUNTED = [
    ("Create a new pull request in a GitHub repository", 9),
    ('{"type":"object","properties":{"path":{"type":"string","description":"Path of the file"}}}', 24),
    ("Merge an open pull request into its base branch, once its checks have passed.", 17),
    ("mcp__google-calendar__find_free_time", 12),
    ("mcp__github__create_pull_request, mcp__github__merge_pull_request, mcp__slack__post_message", 31),
]


@pytest.mark.parametrize(("text", "tokens"), COUNTED)
def test_an_estimate_is_near_the_count_of_a_real_tokenizer(text: str, tokens: int):
    assert 0.8 * tokens <= estimate(text) <= 1.5 * tokens


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("", 0),
        ("a", 1),
        ("検索する", 4),
        ("3.14159265358979", 14),
        ("a" * 900, 200),
        ("Привет, мир", 6),
        ("\ud800", 1),
    ],
)
def test_an_estimate_is_rarely_too_low(text: str, least: int):
    assert estimate(text) >= least


def test_a_text_and_its_bytes_have_the_same_estimate():
    assert estimate("Zürich, 東京 {}") == estimate("Zürich, 東京 {}".encode())


@given(st.text(), st.text())
def test_a_longer_text_never_has_a_lower_estimate(one: str, other: str):
    assert estimate(one) <= estimate(one + other) <= estimate(one) + estimate(other)


def test_the_tokens_of_a_tool_are_those_of_its_definition_for_models():
    small, large = tool(), tool({"type": "object", "properties": {"path": {"type": "string"}}})
    assert 0 < cost_of(small) < cost_of(large)
    assert set(as_sent(small)) == {"name", "description", "input_schema"}
