"""Remembers for 15 minutes, across processes, which servers required a sign-in that was not made.

Such a server is shown as `needs-auth` at start without being contacted. Losing the file loses nothing.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from dragoman import paths
from dragoman.private_files import CLOSE_ON_EXEC, NO_LINK, NO_WAIT

LASTS_SECONDS: Final = 15 * 60.0
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | CLOSE_ON_EXEC | NO_LINK | NO_WAIT


class NeedsAuthCache:
    """One empty file for each server; its time of change is the moment of the answer."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}.needs-auth"

    def is_fresh(self, now: float | None = None) -> bool:
        try:
            written = self._path.stat().st_mtime
        except OSError:
            return False
        return 0 <= (time.time() if now is None else now) - written < LASTS_SECONDS

    def remember(self) -> None:
        try:
            paths.make_private(self._path.parent)
            descriptor = os.open(self._path, _FLAGS, 0o600)
            os.close(descriptor)
            os.utime(self._path)
        except OSError:  # only an optimization
            pass

    def forget(self) -> None:
        try:
            self._path.unlink(missing_ok=True)
        except OSError:
            pass
