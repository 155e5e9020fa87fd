import math
from typing import Any

import pytest

from dragoman.auth.authorization import begin
from dragoman.auth.entry import OAuthSettings
from dragoman.auth.errors import Refused, Rejected
from dragoman.auth.http import NetworkAccess
from dragoman.auth.metadata import AuthServer
from dragoman.auth.registration import ConfiguredClient
from dragoman.auth.tokens import (
    LONGEST_SECONDS,
    TOKEN_LIMIT,
    Account,
    OAuthClient,
    Tokens,
    decode_account,
    encode_account,
    positive_number,
    read_tokens,
    rejected,
)
from dragoman.auth.xaa import IdentityProvider

pytestmark = pytest.mark.requirement("AUT-1")

NOW = 1000.0


def read(document: Any, before: Tokens | None = None) -> Tokens:
    return read_tokens(document, NOW, before=before, requested=("asked",))


def test_the_smallest_token_response():
    assert read({"access_token": "a"}) == Tokens("a", scopes=("asked",))


def test_a_complete_token_response():
    document = {
        "access_token": "a",
        "token_type": "dpop",
        "expires_in": 5,
        "refresh_token": "r",
        "scope": "x y",
        "id_token": "i",
        "other": 1,
    }
    assert read(document) == Tokens("a", "DPoP", NOW + 5, "r", ("x", "y"), "i")


def test_members_missing_from_a_refresh_response_are_kept():
    before = Tokens("old", "Bearer", 5, "r", ("x",), "i")
    assert read({"access_token": "a"}, before) == Tokens("a", "Bearer", None, "r", ("x",), "i")


@pytest.mark.parametrize(
    "document", [None, {}, {"access_token": None}, {"access_token": "a", "token_type": "mac"}]
)
def test_token_responses_that_are_refused(document: Any):
    with pytest.raises(Refused):
        read(document)


@pytest.mark.parametrize(
    "token", ["a\n", "a b", "\0", "é", 5, [], "a" * (TOKEN_LIMIT + 1)], ids=lambda t: str(t)[:9]
)
@pytest.mark.parametrize("name", ["access_token", "refresh_token", "id_token"])
def test_tokens_that_no_header_can_contain_are_refused(name: str, token: Any):
    with pytest.raises(Refused) as caught:
        read({"access_token": "a", name: token})
    said = f"its authorization server gave a value of {name} that cannot be sent in a header"
    assert caught.value.cause == said


def test_an_error_with_status_200_is_an_error():
    with pytest.raises(Rejected) as caught:
        read({"access_token": "a", "error": "invalid_grant", "error_description": "x\ny\x1b"})
    assert (caught.value.error, caught.value.cause) == ("invalid_grant", "invalid_grant: x\\ny\\x1b")


def test_a_long_error_is_cut():
    assert len(rejected({"error": "e" * 10_000, "error_description": "d" * 10_000}).cause) <= 500


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        (5, 5),
        ("5", 5),
        (5.5, 5.5),
        (1e18, LONGEST_SECONDS),
        ("inf", LONGEST_SECONDS),
        (0, None),
        (-1, None),
        ("nan", None),
        ("soon", None),
        (None, None),
        (True, None),
        ([5], None),
        (10**400, None),
    ],
    ids=lambda each: str(each)[:9],
)
def test_when_a_token_expires(stated: Any, expected: float | None):
    found = read({"access_token": "a", "expires_in": stated}).expires_at
    assert found == (None if expected is None else NOW + expected)


def test_the_time_that_remains():
    assert Tokens("a", expires_at=NOW + 5).remaining_seconds(NOW) == 5
    assert Tokens("a").remaining_seconds(NOW) == math.inf


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5.0),
        (0, None),
        (-1, None),
        (True, None),
        ("5", None),
        (math.inf, None),
        (10**400, None),
        (None, None),
    ],
    ids=lambda each: str(each)[:9],
)
def test_which_numbers_are_accepted(value: object, expected: float | None):
    assert positive_number(value) == expected


SERVER = AuthServer("https://as.example", "https://as.example/token", "https://as.example/authorize")
ACCOUNT = Account(
    resource="https://a.example/mcp",
    auth_server=SERVER,
    client=OAuthClient("me", "cAnary-secret", "client_secret_basic", is_registered=True),
    tokens=Tokens("cAnary-access", refresh_token="cAnary-refresh", id_token="cAnary-id"),
    dpop_key={"d": "cAnary-key"},
)


def test_an_account_is_stored_and_read_unchanged():
    assert decode_account(encode_account(ACCOUNT)) == ACCOUNT


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"\xff", b'{"resource": 5}', encode_account(ACCOUNT)[:-5]]
)
def test_an_unreadable_account_is_treated_as_missing(data: bytes):
    assert decode_account(data) is None


@pytest.mark.requirement("AUT-11")
def test_no_repr_shows_a_secret():
    shown = [
        ACCOUNT,
        ACCOUNT.tokens,
        ACCOUNT.client,
        [ACCOUNT],
        begin(ACCOUNT, "http://127.0.0.1/", ()),
        ConfiguredClient("me", "cAnary-secret"),
        OAuthSettings(server="x", url="https://a.example", private_key="cAnary-key", workload_token="cAnary"),
        IdentityProvider(
            issuer="https://i.example",
            client_id="me",
            access=NetworkAccess(),
            client_secret="cAnary",
            id_token="cAnary",
        ),
    ]
    for each in shown:
        for text in (repr(each), str(each), f"{each}", f"{each!a}"):
            assert "cAnary" not in text


def test_the_secrets_of_an_account_are_known_for_redaction():
    assert set(ACCOUNT.secrets) == {"cAnary-secret", "cAnary-access", "cAnary-refresh", "cAnary-id"}
