"""T360: another process, perhaps a stopped one, has locked the file of the approved entries in use."""

import asyncio
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from dragoman import Host, paths
from dragoman.config.plan import _snapshots_file  # pyright: ignore[reportPrivateUsage]
from dragoman.config.scopes import Sources

pytestmark = pytest.mark.requirement("CFG-11")


def configure(home: Path, **more: Any) -> None:
    (home / ".dragoman").mkdir(exist_ok=True)
    servers = {"demo": {"command": sys.executable, "args": ["-m", "dragoman.demo"]}}
    (home / ".dragoman" / "new").write_text(json.dumps({"mcpServers": servers, **more}))
    (home / ".dragoman" / "new").rename(home / ".dragoman" / "settings.json")


def lock_of(file: Path) -> Path:
    name = hashlib.sha256(os.fsencode(file.resolve())).hexdigest()
    return paths.state_dir() / "locks" / f"{name}.lock"


async def until_denied(host: Host, rule: str) -> None:
    while rule not in {each.text for each in host.rules}:
        await asyncio.sleep(0.02)


async def test_t360_new_deny_rules_apply_without_waiting_for_the_lock(home: Path):
    configure(home)
    state = _snapshots_file(Sources.here())
    lock = FileLock(lock_of(state))
    Path(lock.lock_file).parent.mkdir(parents=True)
    with lock:
        async with Host.configured(permission_mode="bypassPermissions", watch=True) as host:
            await host.ready(20)
            async with asyncio.timeout(20):  # the lock is waited for 30 seconds
                for rule in ("mcp__demo__fail", "mcp__demo__add"):
                    configure(home, permissions={"deny": [rule]})
                    await until_denied(host, rule)
            assert not state.exists()
            lock.release()
            await host.reload()
            assert state.exists()
