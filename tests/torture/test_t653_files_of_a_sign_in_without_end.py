"""T653: a file of a stored sign-in is replaced by a pipe, a device or deeply nested JSON. Reading it
ends."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.auth.stores.base import StoreFailed, Vault

pytestmark = [pytest.mark.requirement("AUT-3"), pytest.mark.timeout(20), pytest.mark.usefixtures("home")]

UNREADABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (lambda path: os.mkfifo(path, 0o600), "it is not a regular file"),
    "device": (lambda path: path.symlink_to("/dev/ptmx"), "it is not a regular file"),
    "huge": (lambda path: (path.touch(), os.truncate(path, 10**9)), "it is too large"),
}
DEEP = b'{"a":' * 100_000


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("DRAGOMAN_SECRET_STORE", "file")
    vault = Vault()
    vault.put("key", b"secret")
    return vault


def file_of(vault: Vault, suffix: str) -> Path:
    return vault.lock_path("key").with_suffix(suffix)


@pytest.mark.parametrize("suffix", [".json", ".secret"])
@pytest.mark.parametrize("what", UNREADABLE)
def test_t653_a_special_file_in_place_of_a_secret_is_named_in_the_error(vault: Vault, suffix: str, what: str):
    path = file_of(vault, suffix)
    path.unlink()
    make, cause = UNREADABLE[what]
    make(path)
    with pytest.raises(StoreFailed) as raised:
        vault.get("key")
    assert str(raised.value) == f"{path} cannot be read: {cause}"
    assert vault.keys() == ([] if suffix == ".json" else ["key"])


@pytest.mark.parametrize("suffix", [".json", ".secret"])
def test_t653_deeply_nested_json_is_a_damaged_secret_that_the_next_sign_in_replaces(
    vault: Vault, suffix: str
):
    file_of(vault, suffix).write_bytes(DEEP)
    assert vault.get("key") is None
    vault.put("key", b"new")
    assert vault.get("key") == b"new"
