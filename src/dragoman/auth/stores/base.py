"""The interface of a store of secrets, and the choice of one.

`Vault` records in a marker file, which contains no secret, in which store each secret is. A host without any
sign-in finds no marker, and loads no store.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec
from msgspec import Struct

from dragoman import paths
from dragoman.atomic_write import write_file
from dragoman.errors import ConfigError
from dragoman.own_threads import in_own_thread
from dragoman.private_files import read_regular

T = TypeVar("T")
VARIABLE: Final = "DRAGOMAN_SECRET_STORE"
STORES: Final = ("auto", "keyring", "file", "memory")
UNREADABLE: Final = (0, 0)
"""The version of an account that cannot be read: it is unknown whether it is stored."""
FILE_LIMIT_BYTES: Final = 8 * 1024 * 1024
"""The largest file of a sign-in that is read."""
_MISSING: Final = (FileNotFoundError, NotADirectoryError)
_DAMAGED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class SecretStore(Protocol):
    """Secrets by key. Methods block; they raise `StoreFailed`."""

    @property
    def description(self) -> str:
        """Describes for a person where secrets are stored."""
        ...

    def get(self, key: str) -> bytes | None: ...

    def put(self, key: str, secret: bytes) -> None: ...

    def delete(self, key: str) -> None: ...


STORE_HINT: Final = "Unlock or repair the secret store; see docs/concepts/secrets.md."


class StoreFailed(Exception):
    """A secret could not be read or written; the text contains nothing of it."""

    def __init__(self, cause: str, hint: str = STORE_HINT) -> None:
        super().__init__(cause)
        self.hint = hint


class AccountStore(Protocol):
    """A store of accounts: the secret stores of this machine (`Vault`), or one that several machines share
    (`gateway/store/accounts.py`). `read`, `write` and `remove` raise `StoreFailed`."""

    @property
    def local(self) -> Vault:
        """The secret store of this machine, which always contains the secrets that entries refer to."""
        ...

    @property
    def login_option(self) -> str:
        """The option by which `dragoman mcp login` uses this store; empty if it needs none."""
        ...

    async def read(self, key: str) -> bytes | None: ...

    async def write(self, key: str, secret: bytes) -> None: ...

    async def remove(self, key: str) -> None: ...

    def version(self, key: str) -> tuple[int, int] | None:
        """A value that changes with each change of an account, by any process that uses the store; None if
        there is no account, and UNREADABLE if that is unknown."""
        ...

    def locked(self, key: str, wait_seconds: float | None = None) -> AbstractAsyncContextManager[None]:
        """A lock that is held while an account is read, refreshed and written. Raises `Unavailable`."""
        ...

    def description_of(self, key: str) -> str:
        """Describes where an account is stored; empty if there is none. May block."""
        ...


class _Marker(Struct):
    store: str
    key: str


class Vault:
    """Secrets in the store that the person chose, or in the best one that works."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._folder = paths.config_dir(environ) / "auth"
        self._choice = environ.get(VARIABLE) or "auto"
        if self._choice not in STORES:
            raise ConfigError(f"{VARIABLE} is {self._choice!r}", hint=f"Use one of {', '.join(STORES)}.")
        self._stores: dict[str, SecretStore] = {}

    @property
    def folder(self) -> Path:
        return self._folder

    # The interface of `AccountStore`.

    @property
    def local(self) -> Vault:
        return self

    @property
    def login_option(self) -> str:
        return ""

    async def read(self, key: str) -> bytes | None:
        return await in_store_thread(lambda: self.get(key))

    async def write(self, key: str, secret: bytes) -> None:
        await in_store_thread(lambda: self.put(key, secret))

    async def remove(self, key: str) -> None:
        await in_store_thread(lambda: self.delete(key))

    def locked(self, key: str, wait_seconds: float | None = None) -> AbstractAsyncContextManager[None]:
        from dragoman.auth import lock

        return lock.locked(self.lock_path(key), *([] if wait_seconds is None else [wait_seconds]))

    # Methods that block.

    def get(self, key: str) -> bytes | None:
        """The secret. If there is none, only the existence of a file is checked."""
        if self._choice == "memory":
            return self._store("memory").get(key)
        marker = self._marker(key)
        return None if marker is None else self._store(marker.store).get(key)

    def put(self, key: str, secret: bytes) -> None:
        before = self._marker(key)
        kind = self._kind()
        try:
            self._store(kind).put(key, secret)
        except StoreFailed:
            if self._choice != "auto" or kind == "file":
                raise
            kind = "file"  # a keychain that can be read but not written
            self._store(kind).put(key, secret)
        if kind != "memory":
            self._put_marker(_Marker(kind, key))
        if before is not None and before.store != kind:
            try:
                self._store(before.store).delete(key)
            except StoreFailed:  # for example a locked keychain; its content is not used any more
                pass

    def delete(self, key: str) -> None:
        marker = self._marker(key)
        if self._choice == "memory":
            self._store("memory").delete(key)
        elif marker is not None:
            self._store(marker.store).delete(key)
            self._delete_marker(key)
        elif self._path(key).exists():  # a damaged marker: the secret may be in either store
            if self._kind() == "keyring":
                self._store("keyring").delete(key)
            self._store("file").delete(key)
            self._delete_marker(key)

    def _delete_marker(self, key: str) -> None:
        try:
            self._path(key).unlink(missing_ok=True)
        except OSError as error:
            raise StoreFailed(f"{self._folder} cannot be written: {error.strerror}") from None

    def _put_marker(self, marker: _Marker) -> None:
        try:
            write_file(self._path(marker.key), msgspec.json.encode(marker), private=True)
        except OSError as error:
            raise StoreFailed(f"{self._folder} cannot be written: {error.strerror}") from None

    def description_of(self, key: str) -> str:
        """Where a stored secret is, for people; empty if none is stored."""
        if self._choice == "memory":
            return self._store("memory").description
        try:
            marker = self._marker(key)
        except StoreFailed:
            return f"below {self._folder}, which cannot be read"
        return "" if marker is None else self._store(marker.store).description

    def version(self, key: str) -> tuple[int, int] | None:
        """A value that changes with each change of a stored secret, by any process; None if there is no
        secret, and UNREADABLE if that is unknown."""
        try:
            found = self._path(key).stat()
        except _MISSING:
            return None
        except OSError:
            return UNREADABLE
        return found.st_ino, found.st_mtime_ns

    def keys(self) -> list[str]:
        """The keys of everything that is stored, in no order."""
        found: list[str] = []
        for path in self._folder.glob("*.json"):
            try:
                found.append(_read_marker(path).key)
            except (OSError, *_DAMAGED):  # no marker
                continue
        return found

    def lock_path(self, key: str) -> Path:
        return self._folder / f"{_name(key)}.lock"

    def _path(self, key: str) -> Path:
        return self._folder / f"{_name(key)}.json"

    def _marker(self, key: str) -> _Marker | None:
        path = self._path(key)
        try:
            found = _read_marker(path)
        except (*_MISSING, *_DAMAGED):
            return None
        except OSError as error:  # for example no file descriptors: this does not mean a sign-out
            raise StoreFailed(f"{path} cannot be read: {error.strerror}") from None
        return found if found.key == key and found.store in ("keyring", "file") else None

    def _kind(self) -> str:
        if self._choice != "auto":
            return self._choice
        from dragoman.auth.stores.keyring import is_usable

        return "keyring" if is_usable() else "file"

    def _store(self, kind: str) -> SecretStore:
        if kind not in self._stores:
            self._stores[kind] = self._made(kind)
        return self._stores[kind]

    def _made(self, kind: str) -> SecretStore:
        match kind:
            case "keyring":
                from dragoman.auth.stores.keyring import KeyringStore

                return KeyringStore()
            case "file":
                from dragoman.auth.stores.file import FileStore

                return FileStore(self._folder)
            case _:
                from dragoman.auth.stores.memory import MemoryStore

                return MemoryStore()


async def in_store_thread(work: Callable[[], T]) -> T:
    """Runs `work`, which accesses a store, in a thread of its own. `StoreFailed` if no thread can be started.
    A keychain may wait for a person to unlock it, or forever."""
    try:
        return await in_own_thread(work)
    except OSError as error:
        raise StoreFailed(f"the secret store cannot be used: {error.strerror}") from None


def _read_marker(path: Path) -> _Marker:
    return msgspec.json.decode(read_regular(path, FILE_LIMIT_BYTES), type=_Marker)


def _name(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:40]
