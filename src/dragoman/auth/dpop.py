"""Proofs of possession for tokens that are bound to a key (DPoP, RFC 9449)."""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from typing import Any, Final

from joserfc import jwt
from joserfc.jwk import ECKey
from yarl import URL

ALGORITHM: Final = "ES256"


class DpopKey:
    """One key pair, and the last nonce of each origin."""

    def __init__(self, private: dict[str, Any] | None = None) -> None:
        self._key = ECKey.import_key(private) if private is not None else ECKey.generate_key("P-256")
        self.private: dict[str, Any] = dict(self._key.as_dict(private=True))
        self._public = dict(self._key.as_dict(private=False))
        for name in ("kid", "use", "key_ops", "alg"):
            self._public.pop(name, None)
        self._nonces: dict[str, str] = {}

    def remember_nonce(self, url: str, nonce: str) -> None:
        self._nonces[str(URL(url, encoded=True).origin())] = nonce

    def proof(
        self, method: str, url: str, *, access_token: str | None = None, body: bytes | None = None
    ) -> str:
        """A proof for one request. `body`: the body of a request to an MCP server; the proof contains its
        digest."""
        address = URL(url, encoded=True)
        claims: dict[str, Any] = {
            "jti": secrets.token_urlsafe(16),
            "htm": method,
            "htu": str(address.with_query(None).with_fragment(None)),
            "iat": int(time.time()),
        }
        if access_token is not None:
            claims["ath"] = _digest(access_token.encode())
        if body is not None:
            claims["content_digest"] = f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"
        if (nonce := self._nonces.get(str(address.origin()))) is not None:
            claims["nonce"] = nonce
        header = {"typ": "dpop+jwt", "alg": ALGORITHM, "jwk": self._public}
        return jwt.encode(header, claims, self._key, algorithms=[ALGORITHM])


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
