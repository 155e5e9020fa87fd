"""The store in Redis, as far as it needs no Redis; `tests/interop/python/test_replicas.py` has the rest."""

import asyncio
import sys
from pathlib import Path

import pytest
from redis.exceptions import LockNotOwnedError

from dragoman.errors import ConfigError, MissingPackage, StoreUnavailable
from dragoman.gateway.settings import StoreEntry
from dragoman.gateway.settings_file import read_settings
from dragoman.gateway.store import redis as module
from dragoman.gateway.store.redis import RedisStore, Seal

KEY = "a-key-of-thirty-two-characters-or-more"


def test_without_its_package_the_error_states_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(MissingPackage) as missing:
        RedisStore(StoreEntry(redis="redis://127.0.0.1/0", key=KEY))
    assert str(missing.value) == "redis, a package of the extra 'gateway', is not installed"
    assert missing.value.hint == "In a clone: pip install '.[gateway]'"


@pytest.mark.parametrize("url", ["127.0.0.1:6379", "http://127.0.0.1", ""])
def test_a_url_that_is_not_a_redis_url_is_a_configuration_error(url: str):
    with pytest.raises(ConfigError, match="store: "):
        RedisStore(StoreEntry(redis=url, key=KEY))


def test_a_value_can_be_decrypted_only_with_its_key_and_at_its_name():
    seal = Seal(KEY)
    sealed = seal.sealed("place", b"secret")
    assert b"secret" not in sealed
    assert seal.sealed("place", b"secret") != sealed
    assert seal.opened("place", sealed) == b"secret"
    assert seal.opened("elsewhere", sealed) is None
    assert Seal(KEY + "x").opened("place", sealed) is None
    assert seal.opened("place", sealed[:-1]) is None
    assert seal.opened("place", b"") is None


async def test_an_unreachable_redis_is_named_without_its_password():
    store = RedisStore(StoreEntry(redis="redis://user:pa55word@127.0.0.1:1/0", key=KEY))
    with pytest.raises(StoreUnavailable) as caught:
        await store.get("x", 60)
    assert str(caught.value) == "the gateway's store does not answer (Redis at 127.0.0.1: ConnectionError)"
    with pytest.raises(StoreUnavailable, match="it did not answer a moment ago"):
        await store.count_call("ada", 1)
    await store.close()


def test_the_key_of_a_store_cannot_be_short(tmp_path: Path):
    file = tmp_path / "gateway.json"
    file.touch(mode=0o600)
    file.write_text(
        '{"callers": {"a": {"token": "0123456789abcdef"}}, "store": {"redis": "redis://x", "key": "short"}}'
    )
    with pytest.raises(ConfigError, match="the key of the store has fewer than 32 characters"):
        read_settings(file)


async def test_a_lock_is_extended_after_failures_but_not_after_its_loss(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.0)
    answers: list[Exception | None] = [None, ConnectionError(), TimeoutError(), LockNotOwnedError("lost")]

    class Lock:
        async def extend(self, seconds: float, replace_ttl: bool) -> None:
            if (answer := answers.pop(0)) is not None:
                raise answer

    store = RedisStore(StoreEntry(redis="redis://127.0.0.1:1/0", key=KEY))
    async with asyncio.timeout(5):
        await store._extend(Lock())  # pyright: ignore[reportPrivateUsage]
    assert answers == []
    await store.close()
