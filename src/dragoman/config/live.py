"""Noticing that configuration has changed.

I own: watching the folders of every file that counts, those included that do not exist yet. What a change
means is for whoever listens.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from dragoman.config.scopes import Sources

SETTLE_MS: Final = 150
"""Several writes in a row are one change."""

LOOK_AGAIN_MS: Final = 1000


async def changes(sources: Sources) -> AsyncIterator[None]:
    """One item whenever a file of the configuration may have changed. Ends when it is cancelled."""
    from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

    seen = _stamps(sources)
    while True:
        folders = watched_folders(sources)
        async for _ in awatch(
            *folders,
            watch_filter=lambda _, path: concerns(sources, path),
            recursive=False,
            debounce=SETTLE_MS,
            step=20,
            # What happens while the watch is being set up is never told: a second later it is seen.
            rust_timeout=LOOK_AGAIN_MS,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        ):
            now = _stamps(sources)
            if now != seen:
                seen = now
                yield
            if watched_folders(sources) != folders:
                break


def _stamps(sources: Sources) -> dict[str, tuple[int, int, int]]:
    """What tells one state of the files from another."""
    stamps: dict[str, tuple[int, int, int]] = {}
    for path in sources.watched_files():
        try:
            found = path.stat()
        except (OSError, ValueError):
            continue
        stamps[str(path)] = (found.st_mtime_ns, found.st_size, found.st_ino)
    return stamps


def concerns(sources: Sources, path: str) -> bool:
    """Whether a path is a file of the configuration, or a folder on the way to one."""
    # Asked anew each time: a plugin may have come meanwhile.
    files = [str(file) for file in sources.watched_files()]
    return path in files or any(file.startswith(f"{path}/") for file in files)


def watched_folders(sources: Sources) -> set[Path]:
    """The nearest existing folder of every file."""
    wanted = [path.parent for path in sources.watched_files()]
    wanted.append(sources.plugins_dir)
    return {next(folder for folder in (path, *path.parents) if folder.is_dir()) for path in wanted}
