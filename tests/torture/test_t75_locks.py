"""The lock around a token refresh, when its owner is killed or suspended, or left a lock file behind."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman.auth import lock as lock_module
from dragoman.auth import oauth
from dragoman.auth.errors import Unavailable
from dragoman.auth.lock import locked
from dragoman.credentials import Challenge
from dragoman.errors import Unreachable
from tests.servers.web.auth_world import AuthWorld
from tests.torture.bystander_host import at_once
from tests.torture.signed_in import credentials_of, host_of, sign_in_before

pytestmark = [pytest.mark.requirement("AUT-3"), pytest.mark.slow]

HOLDER = """
import asyncio, sys
from pathlib import Path
from dragoman.auth.lock import locked

async def main():
    async with locked(Path(sys.argv[1])):
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    print("released", flush=True)

asyncio.run(main())
"""


@asynccontextmanager
async def holding(path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Another process that has the lock until it receives a line."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, str(path), stdin=pipe, stdout=pipe
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"held\n"
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_t75_the_lock_of_a_killed_process_is_free(home: Path):
    path = home / "auth" / "x.lock"
    async with holding(path) as holder:
        with pytest.raises(Unavailable):
            async with locked(path, 0.05):
                raise AssertionError
        holder.kill()
        await holder.wait()
        async with at_once(), locked(path, 10):
            pass


async def test_t75_a_refresh_continues_after_the_owner_of_the_lock_was_killed():
    async with AuthWorld() as world:
        sign_in_before(world)
        credentials = credentials_of(world)
        sent = await credentials.headers()
        async with holding(credentials.vault.lock_path(credentials.entry.key)) as holder:
            renewing = asyncio.create_task(credentials.renew(Challenge(401, sent=sent)))
            await asyncio.sleep(0.1)
            assert not renewing.done()
            assert world.refreshes == 0
            holder.kill()
            async with at_once(5):
                assert await renewing is True
        assert world.refreshes == 1


async def test_t75_a_suspended_owner_does_not_block_calls_with_a_valid_token(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(oauth, "REFRESH_WAIT_SECONDS", 0.2)
    async with AuthWorld() as world:
        sign_in_before(world, expires_in=200)
        credentials = credentials_of(world)
        async with holding(credentials.vault.lock_path(credentials.entry.key)) as holder:
            holder.send_signal(signal.SIGSTOP)
            async with host_of(world) as host:
                await host.ready(timeout=20)
                for _ in range(3):
                    assert (await host.call("mcp__x__echo", {"text": "x"})).text == "x"
                async with at_once():
                    await host.close()
            assert world.refreshes == 0


async def test_t75_a_suspended_owner_is_named_in_the_error():
    """The token has expired: the wait is bounded, the error names the process, and no token is lost."""
    async with AuthWorld() as world:
        account = sign_in_before(world)
        credentials = credentials_of(world)
        path = credentials.vault.lock_path(credentials.entry.key)
        sent = await credentials.headers()
        async with holding(path) as holder:
            holder.send_signal(signal.SIGSTOP)
            with pytest.MonkeyPatch.context() as impatient, pytest.raises(Unreachable) as caught:
                impatient.setattr(lock_module, "locked", lambda path: locked(path, 0.2))
                await credentials.renew(Challenge(401, sent=sent))
            assert caught.value.cause == "another process has been refreshing the same sign-in for too long"
            assert caught.value.hint == f"Look for a Dragoman process that hangs (the lock is {path})."
            holder.send_signal(signal.SIGCONT)
            assert holder.stdin is not None
            assert holder.stdout is not None
            holder.stdin.write(b"\n")
            assert await holder.stdout.readline() == b"released\n"
        assert world.refreshes == 0
        assert await credentials_of(world).load() == account


@pytest.mark.parametrize("content", [b"", b"1\n", b"99999999\nhost\n", b"\0" * 100])
async def test_t75_a_lock_file_that_was_left_behind_does_not_lock(home: Path, content: bytes):
    """Also one with the pid of a running process, and one older than the start of the machine."""
    path = home / "auth" / "x.lock"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(content)
    os.utime(path, (1, 1))
    async with at_once(), locked(path, 10):
        pass


async def test_t75_tasks_of_one_process_exclude_each_other(home: Path):
    path = home / "auth" / "x.lock"
    inside: list[int] = []

    async def one() -> None:
        async with locked(path, 30):
            inside.append(1)
            assert len(inside) == 1
            await asyncio.sleep(0)
            inside.pop()

    await asyncio.gather(*(one() for _ in range(10)))


async def test_t75_the_lock_file_is_private_and_a_folder_that_cannot_be_created_is_reported(home: Path):
    before = os.umask(0)
    try:
        path = home / "auth" / "x.lock"
        async with locked(path):
            assert path.stat().st_mode & 0o777 == 0o600
            assert path.parent.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)
    (home / "file").write_text("")
    with pytest.raises(Unavailable) as caught:
        async with locked(home / "file" / "x.lock"):
            raise AssertionError
    assert caught.value.cause == f"the lock {home / 'file' / 'x.lock'} cannot be used: File exists"
    deeper = home / "file" / "folder" / "x.lock"
    with pytest.raises(Unavailable) as caught:
        async with locked(deeper):
            raise AssertionError
    assert caught.value.cause == f"the lock {deeper} cannot be used: Not a directory"


async def test_t75_waiting_for_the_lock_does_not_block_the_loop(home: Path):
    path = home / "auth" / "x.lock"
    async with holding(path):
        waiting = asyncio.create_task(_take(path))
        started, beats = time.monotonic(), 0
        while time.monotonic() - started < 0.3:
            await asyncio.sleep(0.001)
            beats += 1
        assert beats > 30
        waiting.cancel()
        await asyncio.wait([waiting])


async def _take(path: Path) -> None:
    async with locked(path, 30):
        pass
