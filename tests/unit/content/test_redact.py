"""Known secrets in what a server answers."""

import base64
import itertools
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.redact import HIDDEN, Redactor

PLAIN = "s3cret-0f-the-server"
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
def test_a_secret_is_redacted_in_every_spelling(spelling: str):
    assert REDACTOR.text(f"it is {spelling}.") == f"it is {HIDDEN}."


@pytest.mark.parametrize(
    "spelling",
    [
        PLAIN.encode().hex(),
        PLAIN.encode().hex().upper(),
        base64.b64encode(PLAIN.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(b"??>>~~??>>").decode().rstrip("="),
        base64.b64encode(b"??>>~~??>>").decode().rstrip("="),
        "%3f%3f%3e%3e~~%3f%3f%3e%3e",
        "??&gt;&gt;~~??&gt;&gt;",
        "a/b/c/d/e/1".replace("/", "\\/"),
        "hunter2hunter2",
        "me:hunter2hunter2",
        base64.b64encode(b"me:hunter2hunter2").decode(),
    ],
)
def test_a_secret_is_redacted_in_every_encoding(spelling: str):
    login = f"Basic {base64.b64encode(b'me:hunter2hunter2').decode()}"
    redactor = Redactor([PLAIN, "??>>~~??>>", "a/b/c/d/e/1", login])
    assert redactor.text(f"it is {spelling}.") == f"it is {HIDDEN}."


def test_an_encoded_short_secret_is_redacted_too():
    assert Redactor(["abcdef12"]).text(base64.b64encode(b"abcdef12").decode()) == f"{HIDDEN}="
    assert Redactor(["abcdef1"]).text("abcdef1") == "abcdef1", "what is shorter than eight is not looked for"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["x s3cret-0f", "-the-server y"], ["x [secret]", " y"]),
        (["s3cret", "-0f-", "the", "-server"], ["[secret]", "", "", ""]),
        (["s3cret-0f-the-server", "s3cret-0f", "-the-server"], ["[secret]", "[secret]", ""]),
        (["x", "", "y"], ["x", "", "y"]),
        (["s3cret-0f", "x", "-the-server"], ["s3cret-0f", "x", "-the-server"]),
        (["1st line 1", "2nd line 2"], ["[secret]", ""]),
        (
            ["s3cret-0f-the-servers3cret-0f-", "the-servers3cret-0f", "-the-server!"],
            ["[secret][secret]", "[secret]", "!"],
        ),
    ],
)
def test_a_secret_split_over_several_texts_is_redacted(texts: list[str], expected: list[str]):
    assert Redactor([PLAIN, "1st line 1\n2nd line 2"]).texts(texts) == expected


@given(st.lists(st.integers(0, 60), max_size=4))
def test_secrets_are_redacted_wherever_a_text_is_cut(cuts: list[int]):
    whole = f"begin {PLAIN} middle {PLAIN}{PLAIN} end"
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    texts = [whole[begin:end] for begin, end in itertools.pairwise(places)]
    found = "".join(Redactor([PLAIN]).texts(texts))

    assert found.replace(HIDDEN, "").replace(" ", "") == "beginmiddleend"


@pytest.mark.parametrize("before", ["", "a", "ab", "user:"])
@pytest.mark.parametrize("after", ["", "z", "zz"])
def test_most_of_a_base64_secret_is_redacted_with_any_text_around_it(before: str, after: str):
    encoded = base64.b64encode(f"{before}{SECRET}{after}".encode()).decode()
    found = REDACTOR.text(f"Basic {encoded}")

    assert HIDDEN in found
    assert len(found) < len(encoded)


@pytest.mark.parametrize("value", ["true", "short", "production", "12345678", "nothing at all"])
def test_common_words_are_not_redacted(value: str):
    assert REDACTOR.text(f"it is {value}.") == f"it is {value}."


@given(st.lists(st.sampled_from(["a", "xx" * 40, SECRET, SECRET[:7], " "]), max_size=12), st.integers(1, 50))
def test_a_secret_across_two_pieces_is_redacted(parts: list[str], size: int):
    data = "".join(parts).encode()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]

    assert b"".join(REDACTOR.pieces(pieces)) == REDACTOR.text(data.decode()).encode()


def test_without_secrets_the_text_is_unchanged():
    nobody = Redactor(["true", ""])
    pieces = [b"a", b"b"]

    assert not nobody
    assert list(nobody.pieces(pieces)) == pieces
    assert nobody.text("true") == "true"


@pytest.mark.parametrize(
    ("value", "covered"),
    [
        ({"a": [1, {"b": f"x {PLAIN} y"}]}, {"a": [1, {"b": "x [secret] y"}]}),
        ({PLAIN: {"n": None}}, {"[secret]": {"n": None}}),
        (PLAIN, "[secret]"),
        ({"a": True, "b": 1.5}, {"a": True, "b": 1.5}),
    ],
)
def test_keys_and_values_are_redacted(value: Any, covered: Any):
    assert Redactor([PLAIN]).value(value) == covered


def test_a_number_that_is_a_secret_is_redacted():
    assert Redactor(["123456789012"]).value([123456789012, 5]) == ["[secret]", 5]


@pytest.mark.parametrize("secret", ['has "quotes" in it', "has\nlines\nin it", "has \\ in it"])
def test_secrets_with_json_escapes_are_redacted_in_values_too(secret: str):
    value = {"plain": secret, "twice": json.dumps({"x": secret})}
    covered = Redactor([secret]).value(value)

    assert covered == {"plain": "[secret]", "twice": '{"x": "[secret]"}'}


def test_a_value_that_is_too_deep_is_redacted_entirely():
    value: Any = PLAIN
    for _ in range(100_000):
        value = [value]

    assert Redactor([PLAIN]).value(value) == "[secret]"


def test_a_value_without_secrets_is_the_same_object():
    value = {"a": [1, 10**30, "b"]}

    assert Redactor([PLAIN]).value(value) is value
