"""Secrets in files, for machines without a keychain: one file for each, readable by its owner alone.

Files are created with mode 0600 in a folder of mode 0700 and replaced atomically. With a passphrase in
DRAGOMAN_SECRETS_PASSPHRASE the content is encrypted (scrypt, AES-256-GCM).
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.atomic_write import write_file
from dragoman.auth.stores.base import FILE_LIMIT_BYTES, StoreFailed
from dragoman.private_files import read_regular

PASSPHRASE: Final = "DRAGOMAN_SECRETS_PASSPHRASE"


class FileStore:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def description(self) -> str:
        how = "encrypted files" if os.environ.get(PASSPHRASE) else "files that only you can read"
        return f"in {how} below {self._folder}"

    def get(self, key: str) -> bytes | None:
        path = self._path(key)
        try:
            data = read_regular(path, FILE_LIMIT_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreFailed(f"{path} cannot be read: {error.strerror}") from None
        try:
            document = msgspec.json.decode(data, type=dict[str, Any])
            if document.get("key") != key:
                return None
            return _opened(document, key)
        except (msgspec.DecodeError, ValueError, TypeError, KeyError, RecursionError):
            return None  # not readable: a new sign-in replaces it

    def put(self, key: str, secret: bytes) -> None:
        try:
            write_file(self._path(key), msgspec.json.encode(_sealed(key, secret)), private=True)
        except OSError as error:
            raise StoreFailed(f"{self._folder} cannot be written: {error.strerror}") from None

    def delete(self, key: str) -> None:
        try:
            self._path(key).unlink(missing_ok=True)
        except OSError as error:
            raise StoreFailed(f"{self._folder} cannot be written: {error.strerror}") from None

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:40]
        return self._folder / f"{name}.secret"


def _sealed(key: str, secret: bytes) -> dict[str, str]:
    passphrase = os.environ.get(PASSPHRASE)
    if not passphrase:
        return {"key": key, "secret": base64.b64encode(secret).decode()}
    salt, nonce = secrets.token_bytes(16), secrets.token_bytes(12)
    sealed = _cipher(passphrase, salt).encrypt(nonce, secret, key.encode())
    return {
        "key": key,
        "salt": base64.b64encode(salt).decode(),
        "nonce": base64.b64encode(nonce).decode(),
        "sealed": base64.b64encode(sealed).decode(),
    }


def _opened(document: dict[str, Any], key: str) -> bytes | None:
    if "secret" in document:
        return base64.b64decode(document["secret"])
    passphrase = os.environ.get(PASSPHRASE)
    if not passphrase:
        raise StoreFailed(f"the stored secret is encrypted, and {PASSPHRASE} is not set")
    from cryptography.exceptions import InvalidTag

    salt, nonce, sealed = (base64.b64decode(document[name]) for name in ("salt", "nonce", "sealed"))
    try:
        return _cipher(passphrase, salt).decrypt(nonce, sealed, key.encode())
    except InvalidTag:
        raise StoreFailed(f"the stored secret cannot be decrypted with {PASSPHRASE}") from None


def _cipher(passphrase: str, salt: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(hashlib.scrypt(passphrase.encode(), salt=salt, n=2**14, r=8, p=1, dklen=32))
