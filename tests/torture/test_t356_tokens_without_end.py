"""T356: an authorization server, or a helper, gives out a new token all the time. Each is a secret."""

import secrets

import pytest

from dragoman.content.redact import HIDDEN, SECRET_LIMIT, Redactor

pytestmark = pytest.mark.requirement("AUT-11")
KEY = "k3y-0f-the-entry-itself"


def test_t356_no_number_of_tokens_uncovers_a_secret_of_the_entry():
    redactor = Redactor([KEY])
    tokens = [secrets.token_hex(16) for _ in range(3 * SECRET_LIMIT)]
    for token in tokens:
        redactor.learn([token])
    assert redactor.text(f"key {KEY}") == f"key {HIDDEN}"
    assert redactor.text(KEY.encode().hex()) == HIDDEN
    assert redactor.text(tokens[-1]) == HIDDEN


def test_t356_what_is_looked_for_does_not_grow_without_end():
    redactor, counts = Redactor([KEY]), list[int]()
    for _ in range(3):
        redactor.learn(secrets.token_hex(16) for _ in range(2 * SECRET_LIMIT))
        counts.append(len(redactor.spellings))
    assert counts == [counts[0]] * 3
