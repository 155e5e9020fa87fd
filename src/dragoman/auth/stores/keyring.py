"""Secrets in the operating system's keychain, through the library keyring.

Some keychains limit the size of one secret (Windows: 2 560 bytes), so larger ones are stored in parts. The
entry that lists the parts is written last: a reader sees the old secret or the new one, never a mixture.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import keyring
import keyring.errors
from keyring.backend import KeyringBackend

from dragoman.auth.stores.base import StoreFailed

SERVICE: Final = "dragoman"
PART_CHARACTERS: Final = 1000
ATTEMPTS: Final = 5
"""How often reading is retried while a secret is being replaced."""
_WHOLE: Final = "1:"
_PARTS: Final = "n:"


def is_usable() -> bool:
    """Whether there is a keychain that can be used now."""
    backend = _backend()
    if backend is None:
        return False
    try:
        backend.get_password(SERVICE, "probe")
    except Exception:  # border: keyring's backends raise what their libraries raise
        return False
    return True


def _backend() -> KeyringBackend | None:
    try:
        backend = keyring.get_keyring()
        return backend if backend.priority >= 1 else None
    except Exception:  # border: as above; `priority` of an unusable backend raises
        return None


class KeyringStore:
    @property
    def description(self) -> str:
        backend = _backend()
        name = "the system's keychain" if backend is None else backend.name
        return f"in {name}"

    def get(self, key: str) -> bytes | None:
        with _translated("read"):
            head = keyring.get_password(SERVICE, key)
            for _ in range(ATTEMPTS):
                found = None if head is None else _read(key, head)
                if found is not None or head is None:
                    return found
                # A writer has replaced the parts since the head was read.
                before, head = head, keyring.get_password(SERVICE, key)
                if head == before:
                    return None
            return None

    def put(self, key: str, secret: bytes) -> None:
        text = base64.b64encode(secret).decode()
        with _translated("written"):
            before = keyring.get_password(SERVICE, key)
            if len(text) <= PART_CHARACTERS:
                keyring.set_password(SERVICE, key, _WHOLE + text)
            else:
                parts = [text[at : at + PART_CHARACTERS] for at in range(0, len(text), PART_CHARACTERS)]
                head = f"{_PARTS}{len(parts)}:{secrets.token_hex(4)}"
                for name, part in zip(_part_names(key, head), parts, strict=True):
                    keyring.set_password(SERVICE, name, part)
                keyring.set_password(SERVICE, key, head)
            _delete_parts(key, before)

    def delete(self, key: str) -> None:
        with _translated("deleted"):
            before = keyring.get_password(SERVICE, key)
            if before is not None:
                keyring.delete_password(SERVICE, key)
                _delete_parts(key, before)


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text)
    except ValueError:
        return None  # not readable: a new sign-in replaces it


def _read(key: str, head: str) -> bytes | None:
    """The secret; None if a part is missing or cannot be decoded."""
    if head.startswith(_WHOLE):
        return _decoded(head[len(_WHOLE) :])
    parts = [keyring.get_password(SERVICE, name) for name in _part_names(key, head)]
    found = [part for part in parts if part is not None]
    return _decoded("".join(found)) if parts and len(found) == len(parts) else None


def _part_names(key: str, head: str) -> list[str]:
    if not head.startswith(_PARTS):
        return []
    count, _, nonce = head[len(_PARTS) :].partition(":")
    return [f"{key}#{nonce}#{number}" for number in range(int(count))] if count.isdigit() else []


def _delete_parts(key: str, head: str | None) -> None:
    for name in _part_names(key, head or ""):
        try:
            keyring.delete_password(SERVICE, name)
        except keyring.errors.PasswordDeleteError:
            pass


@contextmanager
def _translated(done: str) -> Generator[None]:
    try:
        yield
    except Exception as error:  # border: keyring's backends raise what their libraries raise
        raise StoreFailed(f"the secret could not be {done} in the keychain: {type(error).__name__}") from None
