"""What is stored after a sign-in: the client's identity, the tokens, and where they may be sent. Pure.

Everything is bound to one issuer and one resource. No text form of these values contains a secret.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.auth.challenges import scopes_in
from dragoman.auth.errors import Refused, Rejected
from dragoman.auth.metadata import AuthServer
from dragoman.cleaning import cover, one_line

REFRESH_SECONDS: Final = 300.0
"""A token is refreshed when less than this remains."""
LONGEST_SECONDS: Final = 10 * 365 * 86400.0
SECRET_LENGTH: Final = 6
"""Shorter values of a request are not removed from the answer to it."""
TOKEN_LIMIT: Final = 64 * 1024
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


class HiddenRepr(Struct, frozen=True):
    """Base of values whose repr shows nothing."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class OAuthClient(HiddenRepr, frozen=True, omit_defaults=True):
    """The identity of this host at one authorization server."""

    client_id: str
    client_secret: str | None = None
    auth_method: str = "none"
    redirect_uri: str | None = None
    """The registered redirect URI, if the client was registered dynamically. Empty: for sign-ins on other
    devices."""
    secret_expires_at: float | None = None
    is_registered: bool = False
    """Whether it was registered dynamically."""
    scopes: tuple[str, ...] = ()
    """The scopes it was registered for; some servers grant it no others. Empty: not stated."""

    @property
    def authenticates(self) -> bool:
        """Whether it sends a secret: its own, a signed assertion, or the token of a workload."""
        return self.auth_method != "none" or not self.client_id


class Tokens(HiddenRepr, frozen=True, omit_defaults=True):
    access_token: str
    token_type: str = "Bearer"
    expires_at: float | None = None
    """The time of expiry in seconds since 1970; None: not stated."""
    refresh_token: str | None = None
    scopes: tuple[str, ...] = ()
    """The granted scopes, or the requested ones if the answer did not name any."""
    id_token: str | None = None
    """The ID token of an identity provider."""

    def remaining_seconds(self, now: float) -> float:
        return math.inf if self.expires_at is None else self.expires_at - now


class Account(HiddenRepr, frozen=True, omit_defaults=True):
    """One sign-in at one authorization server for one resource. The unit that is stored."""

    resource: str
    auth_server: AuthServer
    client: OAuthClient
    tokens: Tokens | None = None
    requested_scopes: tuple[str, ...] = ()
    """All scopes that were ever requested; a step-up requests these and the new ones."""
    missing_scopes: tuple[str, ...] = ()
    """Scopes that were missing when requests were refused (403), for the next sign-in, which may be in
    another process."""
    sends_resource: bool = True
    dpop_key: dict[str, Any] | None = None
    """The private key (JWK) to which tokens are bound."""
    version: int = 1

    @property
    def issuer(self) -> str:
        return self.auth_server.issuer

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must not be shown."""
        found = [self.client.client_secret]
        if self.tokens is not None:
            found += [self.tokens.access_token, self.tokens.refresh_token, self.tokens.id_token]
        return tuple(each for each in found if each)


def encode_account(account: Account) -> bytes:
    return msgspec.json.encode(account)


def decode_account(data: bytes) -> Account | None:
    """The stored account; None if it cannot be read, as after a downgrade: then a new sign-in is needed."""
    try:
        return msgspec.json.decode(data, type=Account)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def read_tokens(
    document: Mapping[str, Any] | None, now: float, *, before: Tokens | None, requested: tuple[str, ...]
) -> Tokens:
    """The tokens of a token endpoint's answer with status 200. `before`: the tokens that they replace."""
    if document is None:
        raise Refused("its authorization server did not answer with a JSON object")
    if "error" in document:
        raise rejected(document)
    access = _token(document, "access_token")
    if access is None:
        raise Refused("its authorization server answered without an access token")
    kind = document.get("token_type", "Bearer")
    if not isinstance(kind, str) or kind.lower() not in ("bearer", "dpop"):
        raise Refused("its authorization server gave a token of a type that cannot be used")
    stated = scopes_in(document.get("scope"))
    return Tokens(
        access_token=access,
        token_type="DPoP" if kind.lower() == "dpop" else "Bearer",
        expires_at=_expiry(document.get("expires_in"), now),
        refresh_token=_token(document, "refresh_token") or (before.refresh_token if before else None),
        scopes=stated or (before.scopes if before is not None else requested),
        id_token=_token(document, "id_token") or (before.id_token if before else None),
    )


def rejected(document: Mapping[str, Any], sent: Iterable[str] = ()) -> Rejected:
    """The error of an authorization server, without values that were sent to it, which it may repeat, and
    without tokens beside the error."""
    error, description = document.get("error"), document.get("error_description")
    tokens = (document.get(name) for name in ("access_token", "refresh_token", "id_token"))
    sent = [*sent, *(each for each in tokens if isinstance(each, str))]
    return Rejected(
        _without(error, 80, sent) if isinstance(error, str) else "invalid_request",
        _without(description, 300, sent) if isinstance(description, str) else "",
    )


def _without(text: str, limit: int, sent: Iterable[str]) -> str:
    return one_line(cover(text, (each for each in sent if len(each) >= SECRET_LENGTH)), limit)


def _token(document: Mapping[str, Any], name: str) -> str | None:
    value = document.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > TOKEN_LIMIT or not _TOKEN.fullmatch(value):
        raise Refused(f"its authorization server gave a value of {name} that cannot be sent in a header")
    return value


def _expiry(value: object, now: float) -> float | None:
    """The time at which a token expires. Numbers in texts are common; a value that is not a number, or
    negative, counts as not stated."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    if not seconds > 0:  # nor NaN
        return None
    return now + min(seconds, LONGEST_SECONDS)


def positive_number(value: object) -> float | None:
    """A number above zero; None for anything else, including infinity and NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if 0 < number < math.inf else None
