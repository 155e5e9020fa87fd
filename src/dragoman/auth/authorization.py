"""The authorization request, and the check of the answer to it (RFC 6749, 7636, 8707, 9207). Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct

from dragoman.auth.errors import Refused
from dragoman.auth.metadata import AuthServer
from dragoman.auth.tokens import Account, HiddenRepr, rejected
from dragoman.urls import LIMIT_CHARACTERS


class Attempt(HiddenRepr, frozen=True):
    """One authorization request that waits for its answer. Never stored."""

    url: str
    state: str
    verifier: str
    redirect_uri: str
    issuer: str
    sends_issuer: bool
    scopes: tuple[str, ...]


class CallbackAnswer(Struct, frozen=True):
    """The parameters with which a browser returned. Never printed: they contain the code."""

    parameters: Mapping[str, str]

    def __repr__(self) -> str:
        return "<CallbackAnswer>"


def begin(account: Account, redirect_uri: str, scopes: tuple[str, ...], nonce: str | None = None) -> Attempt:
    """The request for a code, with a new state and a new PKCE verifier. `nonce`: for an ID token."""
    server = account.auth_server
    if server.authorization_endpoint is None:
        raise Refused("its authorization server has no authorization_endpoint")
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    digest = hashlib.sha256(verifier.encode()).digest()
    parameters = {
        "response_type": "code",
        "client_id": account.client.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    if account.sends_resource:
        parameters["resource"] = account.resource
    if scopes:
        parameters["scope"] = " ".join(scopes)
        if "offline_access" in scopes:
            parameters["prompt"] = "consent"
    if nonce is not None:
        parameters["nonce"] = nonce
    endpoint = server.authorization_endpoint.partition("#")[0]
    separator = "&" if "?" in endpoint else "?"
    url = f"{endpoint}{separator}{urlencode(parameters)}"
    if len(url) > LIMIT_CHARACTERS:
        raise Refused(
            f"the URL of the page to sign in at would be longer than {LIMIT_CHARACTERS} characters",
            "Fewer scopes make it shorter: oauth.scopes in the entry.",
        )
    return Attempt(url, state, verifier, redirect_uri, server.issuer, server.sends_issuer, scopes)


def answer_in(url: str) -> CallbackAnswer:
    """The parameters of a redirect URL; repeated ones are dropped. None for a text that is not such a URL."""
    try:
        pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True, max_num_fields=50)
    except ValueError:
        return CallbackAnswer({})
    names = [name for name, _ in pairs]
    return CallbackAnswer({name: value for name, value in pairs if names.count(name) == 1})


def code_in(attempt: Attempt, answer: CallbackAnswer) -> str:
    """The authorization code. The state is checked first, then the issuer, and only then the code or
    error."""
    given = answer.parameters
    if not is_for(attempt, answer):
        raise Refused("the browser returned with an answer to another sign-in")
    stated = given.get("iss")
    if stated is None and attempt.sends_issuer:
        raise Refused("the answer does not say which authorization server it comes from, and it should")
    if stated is not None and stated != attempt.issuer:
        raise Refused("the answer comes from another authorization server")
    if "error" in given:
        raise rejected(given)
    if not given.get("code"):
        raise Refused("the browser returned without a code")
    return given["code"]


def is_for(attempt: Attempt, answer: CallbackAnswer) -> bool:
    given = answer.parameters.get("state", "").encode("utf-8", "surrogatepass")
    return hmac.compare_digest(given, attempt.state.encode())


def scopes_to_request(
    challenged: Sequence[str],
    configured: Sequence[str],
    supported: Sequence[str],
    server: AuthServer,
    before: Sequence[str] = (),
) -> tuple[str, ...]:
    """The scopes of the entry, else of the challenge, else all of the resource, in addition to those
    requested before.

    `offline_access`, without which some servers give no refresh token, is added only where the authorization
    server lists it.
    """
    first = tuple(configured) or tuple(challenged) or tuple(supported)
    wanted = dict.fromkeys((*before, *first))
    if wanted and "offline_access" in server.scopes:
        wanted["offline_access"] = None
    return tuple(wanted)
