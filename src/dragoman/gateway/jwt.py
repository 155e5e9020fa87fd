"""Access tokens of an authorization server: the gateway as an OAuth resource server (RFC 9728, RFC 9068).

A token is verified with the keys that its issuer publishes. Issuer, audience and expiry are checked; the
signature must be made with a key pair. Tokens are used for nothing else, and sent nowhere.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import Key, KeySet

from dragoman.auth.assertions import SIGNING_ALGORITHMS, without_warnings
from dragoman.auth.discovery import read_issuer
from dragoman.auth.http import NetworkAccess, OAuthHttp
from dragoman.auth.metadata import PROTECTED_RESOURCE, TrustRules
from dragoman.gateway.access import KnownCaller
from dragoman.gateway.settings import EVERYTHING, OAuthEntry
from dragoman.interaction import Caller
from dragoman.urls import parse_url

KEYS_SECONDS: Final = 600.0
"""How long the keys of the issuer are used before they are read again."""
RETRY_SECONDS: Final = 10.0
"""The minimum interval between requests to the issuer because of unknown keys."""
WAIT_SECONDS: Final = 2.0
"""How long a request waits for newer keys where some are known."""
LEEWAY_SECONDS: Final = 30


class JwtVerifier:
    def __init__(self, entry: OAuthEntry, monotonic: Callable[[], float]) -> None:
        self._entry = entry
        self._monotonic = monotonic
        self._http = OAuthHttp(entry.issuer, NetworkAccess())
        self._keys: KeySet | None = None
        self._read_at = 0.0
        self._tried_at: float | None = None
        self._reading: asyncio.Task[None] | None = None

    async def __call__(self, token: str) -> KnownCaller | None:
        """The caller of a valid token; None for any other. Raises if the issuer cannot be reached."""
        if token.count(".") != 2:
            return None
        await self._update_keys(KEYS_SECONDS)
        claims = self._claims(token)
        if claims is None:  # perhaps signed with a new key
            await self._update_keys(RETRY_SECONDS)
            claims = self._claims(token)
        return None if claims is None else self._caller(claims)

    async def _update_keys(self, valid_seconds: float) -> None:
        """Reads the keys if they are older than this, once for all requests that wait. Unknown tokens do not
        cause more than one request to the issuer in `RETRY_SECONDS`, whether it answers or not; while it does
        not answer, the known keys are used."""
        now = self._monotonic()
        if self._keys is not None and now - self._read_at <= valid_seconds:
            return
        is_reading = self._reading is not None and not self._reading.done()
        if is_reading or self._tried_at is None or now - self._tried_at > RETRY_SECONDS:
            if not is_reading:
                self._tried_at = now
                self._reading = asyncio.create_task(self._read_keys(), name="dragoman issuer keys")
                self._reading.add_done_callback(self._has_tried)
            assert self._reading is not None
            await asyncio.wait([self._reading], timeout=None if self._keys is None else WAIT_SECONDS)
        if self._keys is None:
            raise ValueError("the issuer did not answer")

    def _has_tried(self, reading: asyncio.Task[None]) -> None:
        self._tried_at = self._monotonic()
        if not reading.cancelled():
            reading.exception()  # asyncio would log it otherwise

    async def _read_keys(self) -> None:
        issuer = await read_issuer(self._http, self._entry.issuer, TrustRules(needs_pkce=False))
        if issuer.jwks_uri is None:
            raise ValueError("the issuer publishes no keys")
        answer = await self._http.get(issuer.jwks_uri)
        published = (answer.document() or {}).get("keys")
        if answer.status != 200 or not isinstance(published, list):
            raise ValueError("the issuer publishes no keys")
        self._keys = KeySet([*_usable(cast("list[Any]", published))])
        self._read_at = self._monotonic()

    def _claims(self, token: str) -> Mapping[str, Any] | None:
        assert self._keys is not None
        try:
            with without_warnings():
                claims = jwt.decode(token, self._keys, algorithms=list(SIGNING_ALGORITHMS)).claims
            jwt.JWTClaimsRegistry(
                leeway=LEEWAY_SECONDS,
                iss={"essential": True, "value": self._entry.issuer},
                aud={"essential": True, "value": self._entry.audience},
                exp={"essential": True},
                sub={"essential": True},
            ).validate(claims)
            # A lone surrogate cannot be written; replaced, it would be the name of another caller.
            claims["sub"].encode()
        except (JoseError, ValueError, TypeError, KeyError):
            return None
        return claims

    def _caller(self, claims: Mapping[str, Any]) -> KnownCaller:
        entry = self._entry
        words = claims.get("scope")
        scopes = words.split() if isinstance(words, str) else []
        selections = tuple(each for scope, each in entry.scopes.items() if scope in scopes)
        if not entry.scopes:
            selections = (EVERYTHING,)
        return KnownCaller(Caller(f"{claims['sub']}@{entry.issuer}"), selections, entry.calls_per_minute)


def _usable(published: list[Any]) -> Iterator[Key]:
    """The keys without those of unknown kinds and those that cannot be read (RFC 7517, section 5)."""
    for each in published:
        with contextlib.suppress(JoseError, ValueError, TypeError, KeyError), without_warnings():
            yield from KeySet.import_key_set({"keys": [each]}).keys


def resource_metadata(entry: OAuthEntry) -> tuple[str, dict[str, Any]]:
    """The path of the protected resource metadata (RFC 9728), which names the issuer, and the document."""
    path = f"{PROTECTED_RESOURCE}{parse_url(entry.audience).path.rstrip('/')}"
    return path, {
        "resource": entry.audience,
        "authorization_servers": [entry.issuer],
        "scopes_supported": sorted(entry.scopes),
        "bearer_methods_supported": ["header"],
    }


def challenge(entry: OAuthEntry) -> str:
    """The header `WWW-Authenticate` for a request without a valid token."""
    path, _ = resource_metadata(entry)
    return f'Bearer resource_metadata="{parse_url(entry.audience).origin}{path}"'
