"""Known secrets in what a server answers."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.redact import HIDDEN, Redactor

SECRET = 's3cr3t/"key"+é=='
REDACTOR = Redactor([SECRET, "Bearer abcdefgh12345678ijkl", "true", "short", "production", "12345678"])


@pytest.mark.parametrize(
    "spelling",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        quote(SECRET, safe=""),
        quote(SECRET),
        "abcdefgh12345678ijkl",
        "Bearer abcdefgh12345678ijkl",
    ],
)
def test_a_secret_is_hidden_however_it_is_spelled(spelling: str):
    assert REDACTOR.text(f"it is {spelling}.") == f"it is {HIDDEN}."


@pytest.mark.parametrize("before", ["", "a", "ab", "user:"])
@pytest.mark.parametrize("after", ["", "z", "zz"])
def test_most_of_a_secret_in_base64_is_hidden_whatever_stands_around_it(before: str, after: str):
    encoded = base64.b64encode(f"{before}{SECRET}{after}".encode()).decode()
    found = REDACTOR.text(f"Basic {encoded}")

    assert HIDDEN in found
    assert len(found) < len(encoded)


@pytest.mark.parametrize("value", ["true", "short", "production", "12345678", "nothing at all"])
def test_common_words_are_not_hidden(value: str):
    assert REDACTOR.text(f"it is {value}.") == f"it is {value}."


@given(st.lists(st.sampled_from(["a", "xx" * 40, SECRET, SECRET[:7], " "]), max_size=12), st.integers(1, 50))
def test_a_border_between_pieces_hides_no_secret_from_us(parts: list[str], size: int):
    data = "".join(parts).encode()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]

    assert b"".join(REDACTOR.pieces(pieces)) == REDACTOR.text(data.decode()).encode()


def test_without_secrets_nothing_is_done():
    nobody = Redactor(["true", ""])
    pieces = [b"a", b"b"]

    assert not nobody
    assert list(nobody.pieces(pieces)) == pieces
    assert nobody.text("true") == "true"
