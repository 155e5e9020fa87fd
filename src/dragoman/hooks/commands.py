"""Hooks that are programs: JSON as input, exit code and JSON as output.

Composes the environment of a hook's program and limits how deep hooks nest. When `run` returns or is
cancelled, no process of the program's process group is alive. `runner.py` interprets the output.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from dragoman import programs
from dragoman.processes import check_group_exists, group_members
from dragoman.programs import CommandFailure, Ended
from dragoman.transports.orphans import watchdog

__all__ = ["CommandFailure", "Ended", "environment", "run"]

OUTPUT_LIMIT_BYTES: Final = 1024 * 1024
REAP_SECONDS: Final = 2.0
POLL_SECONDS: Final = 0.005
DEPTH_LIMIT: Final = 4
"""The maximum nesting of hooks: a hook that calls tools runs further hooks."""
DEPTH: Final = "DRAGOMAN_HOOK_DEPTH"


def environment(environ: Mapping[str, str], facts: Mapping[str, str]) -> dict[str, str]:
    """The environment of a hook: the person's own, because it is the person's own program, and the data of
    this event."""
    # A value that starts with "()" is an exported shell function: code, not a setting.
    kept = {key: value for key, value in environ.items() if not value.startswith("()")}
    depth = kept.get(DEPTH, "0")
    deeper = int(depth) + 1 if depth.isascii() and depth.isdigit() and len(depth) < 4 else DEPTH_LIMIT + 1
    if deeper > DEPTH_LIMIT:
        raise CommandFailure("hooks that call tools that have hooks: too deep")
    # The folder may be a repository's: `python -m json.tool` must not run its `json/tool.py`.
    return {**kept, **facts, DEPTH: str(deeper), "PYTHONSAFEPATH": "1"}


async def run(command: str, given: bytes, *, env: Mapping[str, str], cwd: str) -> Ended:
    """Runs the command to its end. The caller limits the time by cancelling."""
    group = _Group()
    try:
        return await programs.run(
            command, given, env=env, cwd=cwd, limit_bytes=OUTPUT_LIMIT_BYTES, watchdog=group
        )
    except CommandFailure as failure:
        raise CommandFailure(f"it {failure}") from None
    finally:
        await _group_gone(group.number)


class _Group:
    """The process group of one command; it ends when this program ends, in whatever way."""

    number: int | None = None

    def watch(self, pid: int) -> None:
        self.number = pid
        watchdog.watch(pid)

    def release(self, pid: int) -> None:
        watchdog.release(pid)


async def _group_gone(group: int | None) -> None:
    """Waits until the group has ended: signals, and children of a program that has ended, take a moment."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + REAP_SECONDS
    while True:
        if group is None or not _group_lives(group) or loop.time() >= deadline:
            return
        await asyncio.sleep(POLL_SECONDS)


def _group_lives(group: int) -> bool:
    try:
        check_group_exists(group)
        return bool(group_members(group))  # zombies that are not waited for count as existing
    except (ProcessLookupError, PermissionError):
        return False
    except OSError:  # no file descriptor is left to look for them
        return True
