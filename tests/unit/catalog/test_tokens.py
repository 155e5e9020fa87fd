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
def test_an_estimate_is_near_a_real_tokenizers_count(text: str, tokens: int):
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
def test_an_estimate_is_rather_high(text: str, least: int):
    assert estimate(text) >= least


def test_text_and_its_bytes_cost_the_same():
    assert estimate("Zürich, 東京 {}") == estimate("Zürich, 東京 {}".encode())


@given(st.text(), st.text())
def test_more_text_never_costs_less(one: str, other: str):
    assert estimate(one) <= estimate(one + other) <= estimate(one) + estimate(other)


def test_a_tool_costs_what_a_model_is_sent_of_it():
    small, large = tool(), tool({"type": "object", "properties": {"path": {"type": "string"}}})
    assert 0 < cost_of(small) < cost_of(large)
    assert set(as_sent(small)) == {"name", "description", "input_schema"}
