"""T172: a stored sign-in belongs to one entry: the same name and URL with a proxy or other detour is
another account."""

import pytest
from msgspec.structs import replace

from dragoman.auth.entry import ConfiguredClient, OAuthSettings
from dragoman.auth.metadata import TrustRules
from dragoman.config.model import parse_entry
from dragoman.config.schema import XaaIdpConfig
from dragoman.connections.factory import TransportDependencies, oauth_credentials

pytestmark = pytest.mark.requirement("AUT-2")

PLAIN = {"url": "https://notes.example.com/mcp"}
DETOURS = {
    "a proxy": {"proxy": "http://127.0.0.1:1"},
    "certificate authorities": {"tls": {"ca": "/tmp/ca.pem"}},
    "a client certificate": {"tls": {"cert": "/tmp/c.pem"}},
    "a header": {"headers": {"X-Forward": "elsewhere"}},
    "metadata": {"oauth": {"authServerMetadataUrl": "https://evil.example.com/"}},
    "an issuer": {"oauth": {"issuer": "https://evil.example.com"}},
    "a resource": {"oauth": {"resource": "https://notes.example.com"}},
    "endpoint origins": {"oauth": {"endpointOrigins": ["https://evil.example.com"]}},
    "private networks": {"oauth": {"allowPrivateNetwork": True}},
    "a client": {"oauth": {"clientId": "other"}},
    "an identity": {"oauth": {"identity": "work"}},
}


def key_of(given: dict[str, object]) -> str:
    made = oauth_credentials("notes", parse_entry("notes", given), TransportDependencies())
    assert made is not None
    return made.entry.key


@pytest.mark.parametrize("detour", DETOURS)
def test_t172_an_entry_with_a_proxy_has_another_account(detour: str):
    assert key_of({**PLAIN, **DETOURS[detour]}) != key_of(PLAIN)
    assert key_of(PLAIN) == key_of({**PLAIN, "timeout": 5})


def test_t172_the_account_key_can_be_computed_from_any_text():
    odd = replace(OAuthSettings(server="x", url="https://a.example.com/"), client=ConfiguredClient("a\ud83d"))
    assert odd.key != replace(odd, client=ConfiguredClient("b\ud83d")).key
    assert replace(odd, rules=TrustRules(frozenset({"https://b"}))).key != odd.key


def test_t172_the_identity_provider_of_the_organisation_is_not_reached_through_the_entrys_proxy():
    dependencies = TransportDependencies()
    dependencies.identity_provider = lambda: XaaIdpConfig("https://idp.example.com", "corp", enabled=True)
    given = {**PLAIN, "proxy": "http://127.0.0.1:1", "oauth": {"xaa": True, "clientId": "x"}}
    made = oauth_credentials("notes", parse_entry("notes", given), dependencies)
    assert made is not None
    assert made.access.proxy_of("https://as.example.com/") == "http://127.0.0.1:1"
    provider = made.entry.identity_provider
    assert provider is not None
    assert provider.access.proxy_of("https://idp.example.com/") is None
