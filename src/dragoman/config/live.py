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


async def changes(sources: Sources) -> AsyncIterator[None]:
    """One item whenever a file of the configuration may have changed. Ends when it is cancelled."""
    from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

    while True:
        folders = watched_folders(sources)
        async for _ in awatch(
            *folders,
            watch_filter=lambda _, path: concerns(sources, path),
            recursive=False,
            debounce=SETTLE_MS,
            step=20,
            ignore_permission_denied=True,
        ):
            yield
            if watched_folders(sources) != folders:
                break


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
