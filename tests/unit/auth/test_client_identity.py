"""How the host is known to an authorization server, and how it authenticates there."""

import base64
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec import structs

from dragoman.auth.errors import Refused, Rejected, Unavailable
from dragoman.auth.http import Answer
from dragoman.auth.metadata import AuthServer
from dragoman.auth.registration import ConfiguredClient, RegistrationRequest, identify
from dragoman.auth.token_endpoint import choose_auth_method, client_authentication, request_token
from dragoman.auth.tokens import OAuthClient

pytestmark = pytest.mark.requirement("AUT-1")

AS = "https://as.example"
BACK = "http://127.0.0.1:5/callback"


class Http:
    """Answers in turn, and notes what was sent."""

    def __init__(self, *answers: tuple[int, Any] | tuple[int, Any, Mapping[str, str]]) -> None:
        self._answers = list(answers)
        self.sent: list[tuple[str, Any, Any]] = []

    async def post_json(self, url: str, document: Any) -> Answer:
        return self._answer(url, document, None)

    async def post_form(self, url: str, form: Any, headers: Any = None) -> Answer:
        return self._answer(url, dict(form), headers)

    def _answer(self, url: str, data: Any, headers: Any) -> Answer:
        self.sent.append((url, data, headers))
        status, body, *more = self._answers.pop(0)
        encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return Answer(status, more[0] if more else {}, encoded)


def server(*methods: str, **more: Any) -> AuthServer:
    return AuthServer(AS, f"{AS}/token", token_auth_methods=methods or ("none",), **more)


NOTHING = ConfiguredClient()


async def identified(
    http: Http, at: AuthServer, configured: Any = NOTHING, known: Any = None, back: str = BACK
) -> OAuthClient:
    return await identify(http, at, configured, known, RegistrationRequest(back, ("read",)))  # pyright: ignore


REGISTERS = {"registration_endpoint": f"{AS}/register"}


async def test_a_configured_client_comes_first():
    http = Http()
    configured = ConfiguredClient("me", "s", "https://me.example/client.json")
    at = server("client_secret_post", takes_client_documents=True, **REGISTERS)
    assert await identified(http, at, configured) == OAuthClient("me", "s", "client_secret_post")
    assert http.sent == []


async def test_a_client_metadata_document_comes_second_if_the_server_supports_it():
    configured = ConfiguredClient(metadata_url="https://me.example/client.json")
    http = Http((201, {"client_id": "c"}))
    found = await identified(http, server(takes_client_documents=True, **REGISTERS), configured)
    assert found == OAuthClient("https://me.example/client.json")
    assert (await identified(http, server(**REGISTERS), configured)).client_id == "c"


async def test_a_known_registration_with_the_same_redirect_uri_comes_third():
    known = OAuthClient("before", redirect_uri=BACK, is_registered=True)
    http = Http((201, {"client_id": "new"}))
    assert await identified(http, server(**REGISTERS), known=known) == known
    assert http.sent == []
    assert (
        await identified(http, server(**REGISTERS), known=known, back="http://127.0.0.1:6/")
    ).client_id == "new"


async def test_what_a_registration_contains():
    http = Http((201, {"client_id": "c"}), (201, {"client_id": "c"}))
    await identified(http, server(**REGISTERS))
    await identified(http, server(**REGISTERS), back="")
    common = {"client_name": "Dragoman", "token_endpoint_auth_method": "none", "application_type": "native"}
    assert [document for _, document, _ in http.sent] == [
        {
            **common,
            "redirect_uris": [BACK],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "scope": "read",
        },
        {
            **common,
            "redirect_uris": [],
            "grant_types": ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
            "response_types": [],
            "scope": "read",
        },
    ]


REPLIES: list[tuple[int, Any, OAuthClient | type[Exception]]] = [
    (201, {"client_id": "c"}, OAuthClient("c", None, "none", BACK, is_registered=True)),
    (200, {"client_id": "c", "client_secret": "s"}, OAuthClient("c", None, "none", BACK, is_registered=True)),
    (
        201,
        {"client_id": "c", "client_secret": "s", "token_endpoint_auth_method": "client_secret_post"},
        OAuthClient("c", "s", "client_secret_post", BACK, is_registered=True),
    ),
    (
        201,
        {"client_id": "c", "client_secret_expires_at": 5},
        OAuthClient("c", None, "none", BACK, 5.0, is_registered=True),
    ),
    (
        201,
        {"client_id": "c", "client_secret_expires_at": 0},
        OAuthClient("c", None, "none", BACK, is_registered=True),
    ),
    (201, {"client_id": ""}, Refused),
    (201, {"client_id": "c" * 5000}, Refused),
    (201, {"client_id": "c", "token_endpoint_auth_method": "client_secret_basic"}, Refused),
    (201, b"<html>", Refused),
    (400, {"error": "invalid_client_metadata"}, Rejected),
    (500, b"", Rejected),
    (302, b"", Rejected),
]


@pytest.mark.parametrize(("status", "reply", "expected"), REPLIES)
async def test_the_answer_to_a_registration(status: int, reply: Any, expected: Any):
    http = Http((status, reply))
    if isinstance(expected, OAuthClient):
        found = await identified(http, server(**REGISTERS))
        assert structs.replace(found, scopes=()) == expected
    else:
        with pytest.raises(expected):
            await identified(http, server(**REGISTERS))


async def test_without_a_registration_method_the_error_gives_the_next_step():
    with pytest.raises(Refused) as caught:
        await identified(Http(), server())
    assert caught.value.cause == "its authorization server registers no clients by itself"
    assert caught.value.hint is not None
    assert BACK in caught.value.hint


@pytest.mark.parametrize(
    ("supported", "has_secret", "preferred", "expected"),
    [
        (("client_secret_post",), True, None, "client_secret_post"),
        (("client_secret_post", "client_secret_basic"), True, None, "client_secret_basic"),
        (("client_secret_basic",), False, None, "none"),
        (("client_secret_basic",), True, "client_secret_post", "client_secret_post"),
        (("tls_client_auth",), True, None, None),
    ],
)
def test_how_a_client_authenticates(supported, has_secret: bool, preferred: str | None, expected: str | None):
    at = server(*supported)
    if expected is None:
        with pytest.raises(Refused):
            choose_auth_method(at, has_secret=has_secret, preferred=preferred)
    else:
        assert choose_auth_method(at, has_secret=has_secret, preferred=preferred) == expected


def test_basic_authentication_escapes_both_parts():
    fields, headers = client_authentication(OAuthClient("a:b c+é", "p%/:?& ü", "client_secret_basic"))
    pair = base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode()
    assert (fields, pair) == ({}, "a%3Ab%20c%2B%C3%A9:p%25%2F%3A%3F%26%20%C3%BC")


def test_the_other_client_authentication_methods():
    assert client_authentication(OAuthClient("c", "s", "client_secret_post")) == (
        {"client_id": "c", "client_secret": "s"},
        {},
    )
    assert client_authentication(OAuthClient("c", "s", "none")) == ({"client_id": "c"}, {})


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, {"a": 1}, {"a": 1}),
        (200, b"x", Unavailable),
        (400, {"error": "temporarily_unavailable"}, Unavailable),
        (403, b"x", Unavailable),
        (403, {}, Rejected),
        (400, {"error": "invalid_grant"}, Rejected),
        (401, {"error": "invalid_client"}, Rejected),
        (400, b"x", Rejected),
        (429, {"error": "invalid_grant"}, Unavailable),
        (500, {"error": "invalid_grant"}, Unavailable),
        (503, b"", Unavailable),
    ],
)
async def test_answers_of_a_token_endpoint(status: int, body: Any, expected: Any):
    http = Http((status, body))
    if isinstance(expected, dict):
        assert await request_token(http, server(), {}) == expected  # pyright: ignore
    else:
        with pytest.raises(expected):
            await request_token(http, server(), {})  # pyright: ignore


async def test_a_required_nonce_is_added_once():
    from dragoman.auth.dpop import DpopKey

    demand = (400, {"error": "use_dpop_nonce"}, {"DPoP-Nonce": "n"})
    http = Http(demand, demand)
    with pytest.raises(Rejected):
        await request_token(http, server(), {}, dpop=DpopKey())  # pyright: ignore
    assert len(http.sent) == 2
