"""T356: an authorization server, or a headers helper, issues new tokens continuously. Each is a secret."""

import secrets

import pytest

from dragoman.content.redact import HIDDEN, SECRET_LIMIT, Redactor

pytestmark = pytest.mark.requirement("AUT-11")
KEY = "k3y-0f-the-entry-itself"


def test_t356_any_number_of_tokens_does_not_displace_a_secret_of_the_entry():
    redactor = Redactor([KEY])
    tokens = [secrets.token_hex(16) for _ in range(3 * SECRET_LIMIT)]
    for token in tokens:
        redactor.learn([token])
    assert redactor.text(f"key {KEY}") == f"key {HIDDEN}"
    assert redactor.text(KEY.encode().hex()) == HIDDEN
    assert redactor.text(tokens[-1]) == HIDDEN


def test_t356_the_set_of_redacted_values_is_bounded():
    redactor, counts = Redactor([KEY]), list[int]()
    for _ in range(3):
        redactor.learn(secrets.token_hex(16) for _ in range(2 * SECRET_LIMIT))
        counts.append(len(redactor.spellings))
    assert counts == [counts[0]] * 3
