"""JWTs: proofs of possession, assertions of a client, and the ID token of an identity provider."""

import base64
import hashlib
import json
import time
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from dragoman.auth.assertions import client_assertion, read_key, without_warnings
from dragoman.auth.dpop import DpopKey
from dragoman.auth.errors import Refused
from dragoman.auth.metadata import AuthServer
from dragoman.auth.xaa import verify_id_token

AS = AuthServer("https://as.example", "https://as.example/token")
EC = ECKey.generate_key("P-256")


def parts(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    header, claims, _ = token.split(".")
    found = [json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in (header, claims)]
    return found[0], found[1]


def digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.mark.requirement("AUT-10")
def test_a_proof_is_for_one_request_and_shows_no_private_key():
    key = DpopKey()
    header, claims = parts(key.proof("POST", "https://a.example/mcp?x=1#f", access_token="t", body=b"{}"))
    assert (header["typ"], header["alg"], set(header["jwk"])) == (
        "dpop+jwt",
        "ES256",
        {"kty", "crv", "x", "y"},
    )
    assert (claims["htm"], claims["htu"]) == ("POST", "https://a.example/mcp")
    assert claims["ath"] == digest("t")
    assert abs(claims["iat"] - time.time()) < 60
    assert "nonce" not in claims
    again = parts(key.proof("POST", "https://a.example/mcp"))[1]
    assert again["jti"] != claims["jti"]
    assert "ath" not in again
    assert (
        jwt.decode(key.proof("GET", "https://a.example/"), ECKey.import_key(header["jwk"])).claims["htm"]
        == "GET"
    )


@pytest.mark.requirement("AUT-10")
def test_a_nonce_belongs_to_its_origin():
    key = DpopKey()
    key.remember_nonce("https://a.example/x", "n")
    assert parts(key.proof("GET", "https://a.example/y"))[1]["nonce"] == "n"
    assert "nonce" not in parts(key.proof("GET", "https://b.example/x"))[1]
    assert "nonce" not in parts(key.proof("GET", "https://a.example:444/x"))[1]


@pytest.mark.requirement("AUT-10")
def test_a_stored_key_is_the_same_key():
    key = DpopKey()
    again = DpopKey(key.private)
    assert (
        parts(again.proof("GET", "https://a/"))[0]["jwk"] == parts(key.proof("GET", "https://a/"))[0]["jwk"]
    )


KEYS = {
    "EC": (EC, "ES256"),
    "EC, larger": (ECKey.generate_key("P-384"), "ES384"),
    "RSA": (RSAKey.generate_key(2048), "RS256"),
    "Ed25519": (OKPKey.generate_key("Ed25519"), "EdDSA"),
}


@pytest.mark.requirement("AUT-10")
@pytest.mark.parametrize("form", ["PEM", "JWK"])
@pytest.mark.parametrize("kind", KEYS)
def test_an_assertion_is_for_one_issuer(kind: str, form: str):
    key, algorithm = KEYS[kind]
    text = key.as_pem(private=True).decode() if form == "PEM" else json.dumps(key.as_dict(private=True))
    token = client_assertion("me", AS, text, None)
    header, claims = parts(token)
    assert header["alg"] == algorithm
    assert (claims["iss"], claims["sub"], claims["aud"]) == ("me", "me", AS.issuer)
    assert claims["exp"] - claims["iat"] == 300
    with without_warnings():
        assert jwt.decode(token, key, algorithms=[algorithm]).claims == claims
    assert parts(client_assertion("me", AS, text, None))[1]["jti"] != claims["jti"]


@pytest.mark.requirement("AUT-10")
def test_the_algorithm_is_one_that_the_server_supports():
    server = AuthServer("https://as.example", token_signing_algorithms=("PS256",))
    text = KEYS["RSA"][0].as_pem(private=True).decode()
    assert parts(client_assertion("me", server, text, None))[0]["alg"] == "PS256"
    with pytest.raises(Refused, match="supports no signature algorithm of the key"):
        client_assertion("me", server, EC.as_pem(private=True).decode(), None)


@pytest.mark.requirement("AUT-11")
@pytest.mark.parametrize(
    "text", ["", "cAnary", "{", '{"kty": "cAnary"}', "-----BEGIN PRIVATE KEY-----\ncAnary\n"]
)
def test_an_invalid_key_is_refused_without_being_shown(text: str):
    with pytest.raises(Refused) as caught:
        read_key(text)
    assert caught.value.cause == "oauth.privateKey is no private key in PEM or JWK form"


# --- the ID token of an identity provider ---

ISSUER = "https://idp.example"
CLAIMS = {"iss": ISSUER, "aud": "me", "sub": "person", "nonce": "n"}


def signed(key: Any = EC, algorithm: str = "ES256", lasts: float = 300, **changes: Any) -> str:
    claims = {**CLAIMS, "exp": int(time.time() + lasts), "iat": int(time.time()), **changes}
    claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode({"alg": algorithm}, claims, key, algorithms=[algorithm])


def keys(*several: Any) -> dict[str, Any]:
    return {"keys": [each.as_dict(private=False) for each in several or (EC,)]}


def unsigned() -> str:
    header = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    return f"{header}.{signed().split('.')[1]}."


def with_a_public_key_as_a_secret() -> str:
    return signed(OctKey.import_key(EC.as_dict(private=False)["x"]), "HS256")


@pytest.mark.requirement("AUT-8")
def test_a_valid_id_token_is_accepted():
    verify_id_token(signed(), keys(), ISSUER, "me", "n")
    verify_id_token(signed(aud=["me"]), keys(), ISSUER, "me", None)
    verify_id_token(signed(lasts=-30), keys(), ISSUER, "me", "n")


@pytest.mark.requirement("AUT-8")
@pytest.mark.parametrize(
    "token",
    [
        pytest.param(lambda: signed(iss="https://evil.example"), id="another issuer"),
        pytest.param(lambda: signed(iss=f"{ISSUER}/"), id="an issuer with a slash"),
        pytest.param(lambda: signed(iss=None), id="no issuer"),
        pytest.param(lambda: signed(aud="other"), id="another audience"),
        pytest.param(lambda: signed(aud=["other"]), id="another audience in a list"),
        pytest.param(lambda: signed(aud=None), id="no audience"),
        pytest.param(lambda: signed(sub=None), id="no subject"),
        pytest.param(lambda: signed(exp=None), id="no end"),
        pytest.param(lambda: signed(exp="later"), id="an end that is no time"),
        pytest.param(lambda: signed(lasts=-3600), id="expired"),
        pytest.param(lambda: signed(nonce="other"), id="another nonce"),
        pytest.param(lambda: signed(nonce=None), id="no nonce"),
        pytest.param(lambda: signed(ECKey.generate_key("P-256")), id="another key"),
        pytest.param(unsigned, id="not signed"),
        pytest.param(with_a_public_key_as_a_secret, id="a public key as a secret"),
        pytest.param(lambda: signed()[:-4] + "AAAA", id="another signature"),
        pytest.param(lambda: "", id="nothing"),
        pytest.param(lambda: "a.b.c", id="no token"),
        pytest.param(lambda: "a.b", id="half a token"),
        pytest.param(lambda: "é.é.é", id="not ASCII"),
    ],
)
def test_an_id_token_that_is_not_for_this_sign_in_is_refused(token: Any):
    text = token()
    with pytest.raises(Refused) as caught:
        verify_id_token(text, keys(), ISSUER, "me", "n")
    assert caught.value.cause.startswith("the ID token of the company's identity provider ")
    assert not text or text not in caught.value.cause


@pytest.mark.requirement("AUT-8")
@pytest.mark.parametrize(
    "document",
    [
        {},
        {"keys": []},
        {"keys": None},
        {"keys": "x"},
        {"keys": [1]},
        {"keys": [{}]},
        {"keys": [{"kty": "EC"}]},
    ],
    ids=str,
)
def test_invalid_keys_are_refused(document: dict[str, Any]):
    with pytest.raises(Refused):
        verify_id_token(signed(), document, ISSUER, "me", "n")


@pytest.mark.requirement("AUT-8")
def test_an_unknown_kind_of_key_beside_the_right_one_is_ignored():
    document = keys()
    document["keys"].append({"kty": "future", "x": "y"})
    verify_id_token(signed(), document, ISSUER, "me", "n")
