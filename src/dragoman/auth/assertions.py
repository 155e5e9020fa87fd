"""Signed JWTs by which a client authenticates (RFC 7523, `private_key_jwt`)."""

from __future__ import annotations

import secrets
import time
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from joserfc import jwt
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey

from dragoman.auth.errors import Refused
from dragoman.auth.metadata import AuthServer

LASTS_SECONDS: Final = 300
SIGNING_ALGORITHMS: Final = (
    "ES256",
    "ES384",
    "ES512",
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "EdDSA",
)
_ALGORITHMS: Final = {"EC": ("ES256", "ES384", "ES512"), "RSA": ("RS256", "PS256"), "OKP": ("EdDSA",)}
_CURVES: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}


def client_assertion(client_id: str, server: AuthServer, private_key: str, algorithm: str | None) -> str:
    """A signed assertion of the client. `aud` is the issuer (RFC 7523bis), so that it is not valid at another
    server."""
    key = read_key(private_key)
    algorithm = algorithm or _algorithm(key, server.token_signing_algorithms)
    now = int(time.time())
    claims = {
        "iss": client_id,
        "sub": client_id,
        "aud": server.issuer,
        "iat": now,
        "exp": now + LASTS_SECONDS,
        "jti": secrets.token_urlsafe(16),
    }
    if algorithm not in SIGNING_ALGORITHMS:
        raise Refused(f"oauth.signingAlgorithm is none of {', '.join(SIGNING_ALGORITHMS)}")
    try:
        with without_warnings():
            return jwt.encode({"alg": algorithm}, claims, key, algorithms=[algorithm])
    except (ValueError, TypeError, KeyError, JoseError) as error:
        raise Refused(f"oauth.privateKey cannot sign with {algorithm}: {type(error).__name__}") from None


@contextmanager
def without_warnings() -> Generator[None]:
    """Suppresses the library's warning about `EdDSA`: few servers know its new name (RFC 9864) yet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        yield


def read_key(text: str) -> Key:
    """A private key in PEM, or as a JWK."""
    import json

    try:
        if text.lstrip().startswith("{"):
            from joserfc.jwk import import_key

            return import_key(json.loads(text))
        for kind in (ECKey, RSAKey, OKPKey):
            try:
                return kind.import_key(text)
            except (ValueError, JoseError, TypeError):
                continue
    except (ValueError, JoseError, TypeError, KeyError):
        pass
    raise Refused("oauth.privateKey is no private key in PEM or JWK form")


def _algorithm(key: Key, supported: tuple[str, ...]) -> str:
    usable = _ALGORITHMS.get(key.key_type, ())
    if isinstance(key, ECKey):
        usable = (_CURVES.get(str(key.curve_name), "ES256"),)
    chosen = next((each for each in usable if not supported or each in supported), None)
    if chosen is None:
        raise Refused(
            "its authorization server supports no signature algorithm of the key in oauth.privateKey"
        )
    return chosen
