"""T354: a stored sign-in is damaged, or cannot be read for a moment. This does not count as a sign-out."""

import os
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.auth.stores.base import StoreFailed, Vault
from tests.servers.web.auth_world import AuthWorld
from tests.torture.signed_in import credentials_of, entry_of, sign_in_before

pytestmark = [pytest.mark.requirement("AUT-3"), pytest.mark.usefixtures("home")]


@pytest.fixture(autouse=True)
def secret_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SECRET_STORE", "file")


@contextmanager
def no_descriptors() -> Generator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))  # a file cannot get a higher number
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def marker_of(vault: Vault, key: str) -> Path:
    return vault.lock_path(key).with_suffix(".json")


async def test_t354_tokens_in_use_are_not_discarded_when_no_file_can_be_opened():
    async with AuthWorld() as world:
        sign_in_before(world)
        vault, credentials = Vault(), credentials_of(world)
        sent = await credentials.headers()
        os.utime(marker_of(vault, entry_of(world).key))  # as after a change by another process
        with no_descriptors():
            meanwhile = await credentials.headers()
        assert "Authorization" in sent
        assert meanwhile == sent == await credentials.headers()


def test_t354_a_secret_that_could_not_be_deleted_is_not_reported_as_deleted():
    vault = Vault()
    vault.put("key", b"secret")
    with no_descriptors(), pytest.raises(StoreFailed, match="Too many open files"):
        vault.delete("key")
    assert vault.get("key") == b"secret"


def test_t354_an_unreadable_folder_is_reported(tmp_path: Path):
    vault = Vault()
    vault.put("key", b"secret")
    vault.folder.rename(tmp_path / "moved")
    vault.folder.symlink_to(vault.folder)  # like a removed network drive: an error other than "no such file"
    with pytest.raises(StoreFailed, match="cannot be read"):
        vault.get("key")
    assert vault.description_of("key").endswith("which cannot be read")


def test_t354_a_secret_with_a_damaged_marker_is_deleted():
    vault = Vault()
    vault.put("key", b"secret")
    marker_of(vault, "key").write_bytes(b"")
    vault.delete("key")
    assert list(vault.folder.glob("*")) == []
