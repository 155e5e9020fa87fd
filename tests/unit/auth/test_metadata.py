from typing import Any

import pytest

from dragoman.auth.errors import Refused
from dragoman.auth.metadata import (
    SERVER_LIMIT,
    AuthServer,
    TrustRules,
    canonical_resource,
    check_pkce,
    check_resource,
    implied_auth_server,
    is_same_issuer,
    read_auth_server,
    read_protected_resource,
    resource_locations,
    server_locations,
)
from dragoman.urls import parse_url

pytestmark = pytest.mark.requirement("AUT-1")

A = "https://a.example"
RESOURCE_PLACE = f"{A}/.well-known/oauth-protected-resource"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (A, [RESOURCE_PLACE]),
        (f"{A}/", [RESOURCE_PLACE]),
        (f"{A}/mcp", [f"{RESOURCE_PLACE}/mcp", RESOURCE_PLACE]),
        (f"{A}/a/b/?q=1", [f"{RESOURCE_PLACE}/a/b", RESOURCE_PLACE]),
        ("HTTPS://A.example:443/mcp", [f"{RESOURCE_PLACE}/mcp", RESOURCE_PLACE]),
    ],
)
def test_the_urls_of_resource_metadata(url: str, expected: list[str]):
    assert resource_locations(parse_url(url)) == expected


@pytest.mark.parametrize(
    ("issuer", "expected"),
    [
        (A, [f"{A}/.well-known/oauth-authorization-server", f"{A}/.well-known/openid-configuration"]),
        (f"{A}/", [f"{A}/.well-known/oauth-authorization-server", f"{A}/.well-known/openid-configuration"]),
        (
            f"{A}/tenant",
            [
                f"{A}/.well-known/oauth-authorization-server/tenant",
                f"{A}/.well-known/openid-configuration/tenant",
                f"{A}/tenant/.well-known/openid-configuration",
            ],
        ),
    ],
)
def test_the_urls_of_issuer_metadata(issuer: str, expected: list[str]):
    assert server_locations(issuer) == expected


@pytest.mark.parametrize(
    "issuer", ["http://a.example", "javascript:x", "https://u@a.example", "a", "", "ws://a"]
)
def test_an_issuer_that_is_not_a_plain_url_is_refused(issuer: str):
    with pytest.raises(Refused, match="authorization_servers"):
        server_locations(issuer)


def test_the_resource_of_a_url():
    assert canonical_resource("HTTPS://A.example:443/mcp/?q=1#f") == f"{A}/mcp"
    assert canonical_resource(f"{A}/") == A


SERVER = f"{A}/mcp"
AT_PATH, AT_ORIGIN, ELSEWHERE = f"{RESOURCE_PLACE}/mcp", RESOURCE_PLACE, "https://b.example/doc"
RESOURCES: list[tuple[str, str, str | None, bool]] = [
    (SERVER, AT_PATH, None, True),
    (f"{SERVER}/", AT_PATH, None, True),
    ("HTTPS://A.example:443/mcp", AT_PATH, None, True),
    (SERVER, AT_ORIGIN, None, True),
    (A, AT_ORIGIN, None, True),
    (f"{A}/", AT_ORIGIN, None, True),
    (SERVER, ELSEWHERE, None, True),
    (A, AT_PATH, None, False),
    (A, ELSEWHERE, None, False),
    (f"{A}/other", AT_ORIGIN, None, False),
    (f"{A}/mcp/more", AT_PATH, None, False),
    (f"{A}/MCP", AT_PATH, None, False),
    (f"{SERVER}?tenant=2", AT_PATH, None, False),
    ("http://a.example/mcp", AT_PATH, None, False),
    ("https://a.example.evil/mcp", AT_PATH, None, False),
    ("https://b.example/mcp", ELSEWHERE, None, False),
    ("urn:x", AT_PATH, None, False),
    (A, AT_PATH, A, True),
    (f"{A}/api", AT_PATH, f"{A}/api", True),
    (f"{A}/other", AT_PATH, A, False),
]


@pytest.mark.parametrize(("resource", "location", "configured", "is_taken"), RESOURCES)
def test_which_resources_a_document_may_name(
    resource: str, location: str, configured: str | None, is_taken: bool
):
    if is_taken:
        assert check_resource(resource, SERVER, location, configured) == resource, "never normalized"
    else:
        with pytest.raises(Refused, match="its protected-resource metadata is about another resource"):
            check_resource(resource, SERVER, location, configured)


@pytest.mark.parametrize(
    ("document", "cause"),
    [
        ({}, "its protected-resource metadata names no authorization server"),
        ({"authorization_servers": []}, "its protected-resource metadata names no authorization server"),
        ({"authorization_servers": A}, "its protected-resource metadata names no authorization server"),
        ({"authorization_servers": [5]}, "its protected-resource metadata names no authorization server"),
        ({"authorization_servers": [A]}, "its protected-resource metadata has no `resource`"),
        ({"authorization_servers": [A], "resource": 5}, "its protected-resource metadata has no `resource`"),
    ],
)
def test_resource_metadata_that_is_refused(document: dict[str, Any], cause: str):
    with pytest.raises(Refused) as caught:
        read_protected_resource(document)
    assert caught.value.cause == cause


def test_resource_metadata_is_limited_in_size():
    many = [f"https://a{number}.example" for number in range(1000)]
    found = read_protected_resource({"authorization_servers": [A, A, *many], "resource": SERVER})
    assert found.authorization_servers == (A, *many[: SERVER_LIMIT - 1])


ISSUERS: list[tuple[str, str, bool]] = [
    (A, A, True),
    (f"{A}/", A, True),
    (A, f"{A}/", True),
    (f"{A}/t", f"{A}/t", True),
    (f"{A}/t/", f"{A}/t", False),
    (f"{A}/t", f"{A}/t/", False),
    ("https://A.example", A, False),
    (f"{A}:443", A, False),
    ("http://a.example", A, False),
    ("https://b.example", A, False),
    (f"{A}//", A, False),
    (f"{A}/%74", f"{A}/t", False),
    ("", A, False),
]


@pytest.mark.parametrize(("stated", "expected", "is_same"), ISSUERS)
def test_when_two_issuers_are_equal(stated: str, expected: str, is_same: bool):
    assert is_same_issuer(stated, expected) is is_same


DOCUMENT = {"issuer": A, "token_endpoint": f"{A}/token"}


def test_the_smallest_valid_metadata():
    assert read_auth_server(DOCUMENT, expected_issuer=A, rules=TrustRules()) == AuthServer(
        A, token_endpoint=f"{A}/token"
    )


def test_fields_of_another_type_are_treated_as_absent():
    names = [
        "scopes_supported",
        "grant_types_supported",
        "token_endpoint_auth_methods_supported",
        "token_endpoint_auth_signing_alg_values_supported",
        "code_challenge_methods_supported",
        "dpop_signing_alg_values_supported",
        "client_id_metadata_document_supported",
        "authorization_response_iss_parameter_supported",
        "authorization_grant_profiles_supported",
    ]
    for odd in (5, "x", {}, None):
        document = {**DOCUMENT, **dict.fromkeys(names, odd)}
        found = read_auth_server(document, expected_issuer=A, rules=TrustRules())
        assert found.scopes in ((), ("x",))
        assert (found.challenge_methods, found.takes_client_documents, found.sends_issuer) == (
            None,
            False,
            False,
        )
        assert found.token_auth_methods == ("client_secret_basic",)


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"issuer": None}, "the metadata of its authorization server names no issuer"),
        (
            {"issuer": f"{A}/x"},
            f"the metadata of its authorization server is that of another issuer: {A}/x instead of {A}",
        ),
        ({"token_endpoint": None}, "the metadata of its authorization server has no token_endpoint"),
        ({"token_endpoint": 5}, "token_endpoint of its authorization server is not a text"),
        (
            {"jwks_uri": "https://b.example/k"},
            "jwks_uri of its authorization server is at another origin, https://b.example",
        ),
        ({"token_endpoint": f"{A}/$(x)"}, f"token_endpoint is not a plain https URL: {A}/$(x)"),
    ],
)
def test_authorization_server_metadata_that_is_refused(changes: dict[str, Any], cause: str):
    with pytest.raises(Refused) as caught:
        read_auth_server({**DOCUMENT, **changes}, expected_issuer=A, rules=TrustRules())
    assert caught.value.cause == cause


def test_origins_of_endpoints_that_the_entry_names_are_allowed():
    document = {**DOCUMENT, "token_endpoint": "https://b.example/token"}
    rules = TrustRules(endpoint_origins=frozenset({"https://b.example"}))
    assert (
        read_auth_server(document, expected_issuer=A, rules=rules).token_endpoint == "https://b.example/token"
    )


def test_known_origins_of_endpoints_are_allowed():
    google = "https://accounts.google.com"
    document = {"issuer": google, "token_endpoint": "https://oauth2.googleapis.com/token"}
    assert read_auth_server(document, expected_issuer=google, rules=TrustRules()).issuer == google


@pytest.mark.parametrize("methods", [None, (), ("plain",), ("s256",)])
def test_without_pkce_support_the_sign_in_is_refused(methods: tuple[str, ...] | None):
    server = AuthServer(A, challenge_methods=methods)
    with pytest.raises(Refused):
        check_pkce(server, TrustRules())
    check_pkce(server, TrustRules(needs_pkce=False))


def test_what_is_implied_for_a_server_without_metadata():
    found = implied_auth_server(f"{A}/deep/mcp")
    assert (
        found.issuer,
        found.token_endpoint,
        found.authorization_endpoint,
        found.registration_endpoint,
    ) == (
        A,
        f"{A}/token",
        f"{A}/authorize",
        f"{A}/register",
    )
    check_pkce(found, TrustRules())
