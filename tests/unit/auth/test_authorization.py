import base64
import hashlib
from urllib.parse import parse_qs, urlsplit

import pytest

from dragoman.auth.authorization import answer_in, begin, code_in, is_for, scopes_to_request
from dragoman.auth.errors import Refused, Rejected
from dragoman.auth.metadata import AuthServer
from dragoman.auth.tokens import Account, OAuthClient

pytestmark = pytest.mark.requirement("AUT-1")

AS = "https://as.example"
BACK = "http://127.0.0.1:5/callback"


def account(endpoint: str | None = f"{AS}/authorize", **more: bool) -> Account:
    server = AuthServer(AS, token_endpoint=f"{AS}/token", authorization_endpoint=endpoint)
    return Account(
        resource="https://a.example/mcp", auth_server=server, client=OAuthClient("me & you"), **more
    )


def asked(url: str) -> dict[str, str]:
    return {name: value for name, (value,) in parse_qs(urlsplit(url).query).items()}


def test_the_authorization_request():
    attempt = begin(account(), BACK, ("read", "write"))
    digest = hashlib.sha256(attempt.verifier.encode()).digest()
    assert asked(attempt.url) == {
        "response_type": "code",
        "client_id": "me & you",
        "redirect_uri": BACK,
        "state": attempt.state,
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
        "resource": "https://a.example/mcp",
        "scope": "read write",
    }
    assert attempt.verifier not in attempt.url
    assert 43 <= len(attempt.verifier) <= 128
    assert repr(attempt) == "<Attempt>"


def test_each_request_has_its_own_state_and_verifier():
    attempts = [begin(account(), BACK, ()) for _ in range(100)]
    assert len({each.state for each in attempts}) == len({each.verifier for each in attempts}) == 100
    assert min(len(each.state) for each in attempts) >= 43


def test_optional_parameters_of_the_request():
    plain = asked(begin(account(sends_resource=False), BACK, ()).url)
    assert not {"resource", "scope", "prompt", "nonce"} & plain.keys()
    more = asked(begin(account(), BACK, ("offline_access",), "n").url)
    assert (more["prompt"], more["nonce"]) == ("consent", "n")


def test_a_query_of_the_endpoint_is_kept_and_a_fragment_is_not():
    url = begin(account(f"{AS}/authorize?tenant=2#top"), BACK, ()).url
    assert url.startswith(f"{AS}/authorize?tenant=2&response_type=code&")


def test_without_an_authorization_endpoint_there_is_no_request():
    with pytest.raises(Refused, match="its authorization server has no authorization_endpoint"):
        begin(account(None), BACK, ())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {}),
        ("code=c&state=s", {"code": "c", "state": "s"}),
        ("code=a%20b+c", {"code": "a b c"}),
        ("code=&state", {"code": "", "state": ""}),
        ("code=1&code=2&state=s", {"state": "s"}),
        ("state=s&state=s", {}),
        ("code=1&error=e&code=1", {"error": "e"}),
        ("&".join(f"p{number}=1" for number in range(51)), {}),
    ],
)
def test_the_parameters_of_a_redirect(query: str, expected: dict[str, str]):
    assert answer_in(f"{BACK}?{query}").parameters == expected
    assert repr(answer_in(f"{BACK}?{query}")) == "<CallbackAnswer>"


@pytest.mark.parametrize("text", ["", "x", "http://[", "http://[::1", "\0", "\udc80?state=\udc80"])
def test_a_text_that_is_not_a_redirect_url_is_refused(text: str):
    attempt = begin(account(), BACK, ())
    assert not is_for(attempt, answer_in(text))


def test_the_parameters_count_only_with_the_right_state():
    attempt = begin(account(), BACK, ())
    with pytest.raises(Refused, match="an answer to another sign-in"):
        code_in(attempt, answer_in(f"{BACK}?state=x&error=shown"))
    with pytest.raises(Rejected) as caught:
        code_in(attempt, answer_in(f"{BACK}?state={attempt.state}&error=access_denied&code=c"))
    assert (caught.value.error, caught.value.cause) == ("access_denied", "access_denied")
    with pytest.raises(Refused, match="the browser returned without a code"):
        code_in(attempt, answer_in(f"{BACK}?state={attempt.state}&code="))
    with pytest.raises(Refused, match="the browser returned without a code"):
        code_in(attempt, answer_in(f"{BACK}?state={attempt.state}&code=1&code=2"))
    assert code_in(attempt, answer_in(f"{BACK}?state={attempt.state}&code=c")) == "c"


LISTS = AuthServer(AS, scopes=("offline_access", "other"))
SILENT = AuthServer(AS)
SCOPES = [
    ((), (), (), SILENT, (), ()),
    (("c",), ("e",), ("s",), SILENT, (), ("e",)),
    ((), ("e",), ("s",), SILENT, (), ("e",)),
    ((), (), ("s", "t"), SILENT, (), ("s", "t")),
    (("c",), (), ("s",), SILENT, ("b", "c"), ("b", "c")),
    (("c",), (), (), LISTS, (), ("c", "offline_access")),
    ((), (), (), LISTS, (), ()),
]


@pytest.mark.parametrize(("challenged", "configured", "supported", "server", "before", "expected"), SCOPES)
def test_which_scopes_are_requested(challenged, configured, supported, server, before, expected):
    assert scopes_to_request(challenged, configured, supported, server, before) == expected
