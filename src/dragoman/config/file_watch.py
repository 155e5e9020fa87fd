"""Detects changes of configuration files.

Watches the folders of all files in use, including files that do not exist yet. The listener decides what a
change means.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from dragoman.config.scopes import Sources

SETTLE_MS: Final = 150
"""Several writes in a row are one change."""

LOOK_AGAIN_MS: Final = 1000


Stamps = dict[str, tuple[int, int, int, int]]


async def changes(
    sources: Sources, since: Stamps | None = None, is_behind: Callable[[], bool] = lambda: False
) -> AsyncIterator[None]:
    """Yields an item whenever a file of the configuration has changed since the given state. Ends when it is
    cancelled.

    `is_behind`: called every second; if it returns true, an item is yielded without a change.
    """
    seen = stamps(sources) if since is None else since
    while True:
        try:
            from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

            folders, wanted = watched_folders(sources), paths_of_interest(sources)
            ticks = awatch(
                *folders,
                # Called for every file that any program writes into these folders. A plugin that was added
                # since is found by the comparison.
                watch_filter=lambda _, path, wanted=wanted: path in wanted,
                recursive=False,
                debounce=SETTLE_MS,
                step=20,
                # A change while the watch is set up is not reported; the comparison a second later finds it.
                rust_timeout=LOOK_AGAIN_MS,
                yield_on_timeout=True,
                ignore_permission_denied=True,
            )
            async for _ in ticks:
                if (now := stamps(sources)) != seen or is_behind():
                    seen = now
                    yield
                if watched_folders(sources) != folders:
                    break
        except (OSError, RuntimeError, ImportError):
            # No more watches or file descriptors are available, or a folder was removed: polling works as
            # well.
            await asyncio.sleep(LOOK_AGAIN_MS / 1000)
            if (now := stamps(sources)) != seen or is_behind():
                seen = now
                yield


def stamps(sources: Sources) -> Stamps:
    """Values that distinguish one state of the files from another."""
    found_stamps: Stamps = {}
    for path in sources.watched_files():
        try:
            found = _state(path)
        except (OSError, ValueError):
            continue
        found_stamps[str(path)] = (
            found.st_mtime_ns,
            found.st_ctime_ns,  # cannot be set by programs such as `cp -p`
            found.st_size,
            found.st_ino,
        )
    return found_stamps


def _state(path: Path) -> os.stat_result:
    """The state of the file; if it cannot be reached, of the link or the file that blocks its path."""
    try:
        return path.stat()
    except OSError:
        place = path if os.path.islink(path) else path.parent
        if os.path.isdir(place):  # changes whenever a file in it is created or removed
            raise
        return place.lstat()


def paths_of_interest(sources: Sources) -> frozenset[str]:
    """The files of the configuration, and the folders on the way to them."""
    files = sources.watched_files()
    return frozenset(str(path) for file in files for path in (file, *file.parents))


def watched_folders(sources: Sources) -> set[Path]:
    """The nearest existing folder of every file."""
    wanted = [path.parent for path in sources.watched_files()]
    wanted.append(sources.plugins_dir)
    return {next(folder for folder in (path, *path.parents) if os.path.isdir(folder)) for path in wanted}
