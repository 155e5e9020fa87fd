"""Where secrets are: files with their modes and encryption, the keychain in parts, memory, and the choice."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import keyring
import keyring.backend
import keyring.errors
import pytest

from dragoman.auth.client_secrets import read_client_secret, store_client_secret
from dragoman.auth.errors import Refused
from dragoman.auth.needs_auth import LASTS_SECONDS, NeedsAuthCache
from dragoman.auth.references import is_reference
from dragoman.auth.stores.base import StoreFailed, Vault
from dragoman.auth.stores.file import PASSPHRASE, FileStore
from dragoman.auth.stores.keyring import PART_CHARACTERS, KeyringStore, is_usable
from dragoman.auth.stores.memory import MemoryStore
from dragoman.errors import ConfigError

pytestmark = pytest.mark.requirement("AUT-2")

SECRET = b"cAnary \xff\x00 secret"
LARGE = os.urandom(64 * 1024)


class Keychain(keyring.backend.KeyringBackend):
    """One in memory, with a limit for each secret; it can be told to fail at the n-th write."""

    priority = 5  # pyright: ignore
    name = "Test Keychain"  # pyright: ignore

    def __init__(self) -> None:
        self.secrets: dict[tuple[str, str], str] = {}
        self.fails_after: int | None = None

    def get_password(self, service: str, username: str) -> str | None:
        return self.secrets.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        assert len(password) <= 1280, "Windows takes 2 560 bytes of UTF-16"
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                raise RuntimeError("cAnary in an error")
        self.secrets[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.secrets.pop((service, username), None) is None:
            raise keyring.errors.PasswordDeleteError


@pytest.fixture
def keychain() -> Iterator[Keychain]:
    before = keyring.get_keyring()
    found = Keychain()
    keyring.set_keyring(found)
    yield found
    keyring.set_keyring(before)


@pytest.fixture(params=["file", "encrypted file", "keyring", "memory"])
def store(request: pytest.FixtureRequest, home: Path, keychain: Keychain, monkeypatch: pytest.MonkeyPatch):
    if request.param == "encrypted file":
        monkeypatch.setenv(PASSPHRASE, "pass")
    kinds = {"keyring": KeyringStore, "memory": MemoryStore}
    return kinds[request.param]() if request.param in kinds else FileStore(home / ".dragoman" / "auth")


@pytest.mark.parametrize("secret", [b"", b"x", SECRET, LARGE], ids=["empty", "short", "bytes", "large"])
def test_a_store_returns_the_stored_secret(store, secret: bytes):
    assert store.get("a") is None
    store.put("a", secret)
    store.put("b", b"other")
    assert (store.get("a"), store.get("b")) == (secret, b"other")
    store.put("a", b"new")
    assert store.get("a") == b"new"
    store.delete("a")
    assert (store.get("a"), store.get("b")) == (None, b"other")
    store.delete("a")


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_files_are_private_with_any_umask(home: Path, mask: int):
    before = os.umask(mask)
    try:
        vault = Vault()
        vault.put("a", SECRET)
        NeedsAuthCache(vault.folder, "n").remember()
    finally:
        os.umask(before)
    assert stat.S_IMODE(vault.folder.stat().st_mode) == 0o700
    modes = {stat.S_IMODE(path.stat().st_mode) for path in vault.folder.iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE((home / ".dragoman").stat().st_mode) == 0o700


def test_a_file_that_others_could_read_is_made_private(home: Path):
    vault = Vault()
    vault.put("a", SECRET)
    for path in vault.folder.iterdir():
        path.chmod(0o666)
    vault.folder.chmod(0o755)
    vault.put("a", SECRET)
    assert {stat.S_IMODE(path.stat().st_mode) for path in vault.folder.iterdir()} == {0o600}
    assert stat.S_IMODE(vault.folder.stat().st_mode) == 0o700


def test_an_encrypted_file_can_be_read_only_with_its_passphrase(home: Path, monkeypatch: pytest.MonkeyPatch):
    store = FileStore(home / "s")
    monkeypatch.setenv(PASSPHRASE, "right")
    store.put("a", b"cAnary-secret")
    assert "encrypted" in store.description
    (path,) = (home / "s").iterdir()
    assert b"cAnary" not in path.read_bytes()
    assert b"Y0FuYXJ5" not in path.read_bytes(), "nor in base64"
    assert store.get("a") == b"cAnary-secret"
    monkeypatch.setenv(PASSPHRASE, "wrong")
    with pytest.raises(StoreFailed, match=f"cannot be decrypted with {PASSPHRASE}"):
        store.get("a")
    monkeypatch.delenv(PASSPHRASE)
    with pytest.raises(StoreFailed, match=f"is encrypted, and {PASSPHRASE} is not set"):
        store.get("a")


def test_a_file_of_another_key_is_ignored(home: Path):
    store = FileStore(home / "s")
    store.put("a", SECRET)
    (path,) = (home / "s").iterdir()
    content = path.read_bytes()
    store.put("b", b"other")
    (other,) = set((home / "s").iterdir()) - {path}
    other.write_bytes(content)
    assert store.get("b") is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\0\0",
        b'{"key": "a"}',
        b'{"key": "a", "secret": 5}',
        b'{"key": "a", "secret": "a"}',
        b'{"key": "a", "salt": "x"}',
        b'{"key": "a", "salt": "AAAA", "nonce": 5, "sealed": "AAAA"}',
        b'{"key": "a", "salt": "AAAA", "nonce": "", "sealed": ""}',
    ],
)
@pytest.mark.parametrize("passphrase", [None, "pass"])
def test_a_damaged_file_is_treated_as_missing_and_can_be_replaced(
    home: Path, content: bytes, passphrase: str | None, monkeypatch: pytest.MonkeyPatch
):
    if passphrase is not None:
        monkeypatch.setenv(PASSPHRASE, passphrase)
    store = FileStore(home / "s")
    store.put("a", SECRET)
    (path,) = (home / "s").iterdir()
    path.write_bytes(content)
    try:
        assert store.get("a") is None
    except StoreFailed:
        assert passphrase is None, "it may be an encrypted one"
    store.put("a", SECRET)
    assert store.get("a") == SECRET


def test_a_write_that_fails_leaves_the_old_secret(home: Path, monkeypatch: pytest.MonkeyPatch):
    store = FileStore(home / "s")
    store.put("a", b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", fail)
        patch.setattr(os, "rename", fail)
        with pytest.raises(StoreFailed) as caught:
            store.put("a", SECRET)
    assert str(caught.value) == f"{home / 's'} cannot be written: No space left on device"
    assert store.get("a") == b"old"
    assert len(list((home / "s").iterdir())) == 1


def test_a_folder_that_cannot_be_written_is_an_error_with_a_message(home: Path):
    (home / ".dragoman").write_text("")
    with pytest.raises(StoreFailed, match="cannot be written"):
        Vault().put("a", SECRET)


def test_a_marker_that_cannot_be_written_or_deleted_is_an_error_with_a_message(
    home: Path, keychain: Keychain, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DRAGOMAN_SECRET_STORE", "keyring")
    vault = Vault(os.environ)
    vault.put("a", SECRET)

    def fail(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", fail)
        patch.setattr(os, "rename", fail)
        patch.setattr(Path, "unlink", fail)
        for act in (lambda: vault.put("a", b"new"), lambda: vault.delete("a")):
            with pytest.raises(StoreFailed) as caught:
                act()
            assert str(caught.value) == f"{vault.folder} cannot be written: Read-only file system"


# --- the keychain ---


def test_a_large_secret_is_stored_in_parts_and_deleted_completely(keychain: Keychain):
    store = KeyringStore()
    store.put("a", LARGE)
    parts = -(-len(LARGE) * 4 // 3 // PART_CHARACTERS)
    assert parts <= len(keychain.secrets) <= parts + 2
    store.put("a", os.urandom(3000))
    assert len(keychain.secrets) == 5
    store.put("a", b"small")
    assert len(keychain.secrets) == 1
    store.delete("a")
    assert keychain.secrets == {}


@pytest.mark.parametrize("writes", range(6))
def test_an_interrupted_write_leaves_the_old_secret(keychain: Keychain, writes: int):
    store = KeyringStore()
    old, new = os.urandom(3000), os.urandom(3100)
    store.put("a", old)
    keychain.fails_after = writes
    with pytest.raises(StoreFailed) as caught:
        store.put("a", new)
    assert str(caught.value) == "the secret could not be written in the keychain: RuntimeError"
    assert store.get("a") == old
    keychain.fails_after = None
    store.put("a", new)
    assert store.get("a") == new


@pytest.mark.parametrize("head", ["", "x", "1:%%%a", "1:a", "n:", "n:x:y", "n:2:nonce", "n:0:y"])
def test_a_damaged_keychain_entry_is_treated_as_missing_and_can_be_replaced(keychain: Keychain, head: str):
    keychain.secrets["dragoman", "a"] = head
    store = KeyringStore()
    assert store.get("a") in (None, b"")
    store.put("a", SECRET)
    assert store.get("a") == SECRET


def test_a_keychain_failure_is_reported_without_its_message(
    keychain: Keychain, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object) -> None:
        raise RuntimeError("cAnary")

    monkeypatch.setattr(keychain, "get_password", fail)
    with pytest.raises(StoreFailed) as caught:
        KeyringStore().get("a")
    assert str(caught.value) == "the secret could not be read in the keychain: RuntimeError"
    assert not is_usable()


# --- the choice ---


def test_the_best_working_store_is_used_and_described(keychain: Keychain, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DRAGOMAN_SECRET_STORE", "auto")
    vault = Vault(os.environ)
    vault.put("a", SECRET)
    assert vault.description_of("a") == "in Test Keychain"
    assert (len(keychain.secrets), vault.get("a")) == (1, SECRET)
    assert SECRET not in b"".join(path.read_bytes() for path in vault.folder.iterdir())

    monkeypatch.setenv("DRAGOMAN_SECRET_STORE", "file")
    later = Vault(os.environ)
    assert later.get("a") == SECRET, "found where it is"
    later.put("a", b"new")
    assert (keychain.secrets, later.get("a")) == ({}, b"new"), "moved, and none is left behind"
    assert later.description_of("a") == f"in files that only you can read below {later.folder}"
    later.delete("a")
    assert (later.get("a"), list(later.folder.iterdir())) == (None, [])
    assert later.description_of("a") == ""


def test_without_a_keychain_files_are_used(keychain: Keychain, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DRAGOMAN_SECRET_STORE", "auto")
    monkeypatch.setattr(Keychain, "priority", 0)
    vault = Vault(os.environ)
    vault.put("a", SECRET)
    assert vault.description_of("a") == f"in files that only you can read below {vault.folder}"


def test_the_memory_store_writes_no_file(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DRAGOMAN_SECRET_STORE", "memory")
    vault = Vault(os.environ)
    vault.put("a", SECRET)
    assert vault.get("a") == SECRET
    assert not vault.folder.exists()
    vault.delete("a")
    assert vault.get("a") is None


def test_an_unknown_store_is_refused():
    with pytest.raises(ConfigError, match="DRAGOMAN_SECRET_STORE is 'cloud'"):
        Vault({**os.environ, "DRAGOMAN_SECRET_STORE": "cloud"})


# --- client secrets ---

URL = "https://a.example/mcp"


def test_a_client_secret_is_read_by_reference_only_for_its_server():
    vault = Vault()
    reference = store_client_secret(vault, "work", URL, "cAnary")
    assert is_reference(reference)
    assert "cAnary" not in reference
    assert read_client_secret(vault, reference, "work", "HTTPS://A.example:443/mcp") == "cAnary"
    for server, url in (("other", URL), ("work", "https://b.example/mcp"), ("work", f"{URL}/x")):
        with pytest.raises(Refused) as caught:
            read_client_secret(vault, reference, server, url)
        assert caught.value.cause == "the secret that its entry refers to was stored for another server"


@pytest.mark.parametrize("reference", ["secret-store:", "secret-store:unknown", "secret-store:../../x"])
def test_a_reference_to_a_missing_secret_is_refused(reference: str):
    with pytest.raises(Refused, match="its secret is not in the secret store of this machine"):
        read_client_secret(Vault(), reference, "work", URL)


# --- what asked for a sign-in ---


@pytest.mark.requirement("AUT-6")
def test_needs_auth_is_remembered_for_15_minutes(home: Path):
    cache = NeedsAuthCache(home / "auth", "x")
    assert not cache.is_fresh()
    cache.remember()
    written = (home / "auth" / "x.needs-auth").stat().st_mtime
    assert LASTS_SECONDS == 900
    for seconds, expected in ((0, True), (899, True), (900, False), (-1, False)):
        assert cache.is_fresh(written + seconds) is expected, seconds
    assert NeedsAuthCache(home / "auth", "x").is_fresh(), "also for another process"
    assert not NeedsAuthCache(home / "auth", "y").is_fresh()
    cache.forget()
    cache.forget()
    assert not cache.is_fresh()


@pytest.mark.requirement("AUT-6")
def test_a_needs_auth_mark_that_cannot_be_written_is_no_error(home: Path):
    (home / "file").write_text("")
    cache = NeedsAuthCache(home / "file", "x")
    cache.remember()
    cache.forget()
    assert not cache.is_fresh()
