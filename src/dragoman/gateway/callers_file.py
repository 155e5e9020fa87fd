"""The callers of a gateway, read again when its file changes: a token that is taken out is refused at once.

A file that cannot be used changes nothing, and is reported. Views and the store hold from the start on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from time import monotonic
from typing import Final

from dragoman.errors import ConfigError
from dragoman.gateway.access import Identify, KnownCaller
from dragoman.gateway.settings import GatewaySettings, read_settings

CHECK_SECONDS: Final = 1.0
"""How often the file is looked at, when requests come."""


class CallersFile:
    def __init__(
        self,
        path: Path,
        settings: GatewaySettings,
        identify_of: Callable[[GatewaySettings], Identify],
        report: Callable[[str], None],
    ) -> None:
        """`settings`: what the file says now; `identify_of`: who may use the gateway by them."""
        self._path = path
        self._settings = settings
        self._identify_of = identify_of
        self._identify = identify_of(settings)
        self._report = report
        self._version = _version(path)
        self._check_at = 0.0

    async def identify(self, authorization: Collection[str]) -> KnownCaller:
        """See `Identify`."""
        now = monotonic()
        if now >= self._check_at:
            self._check_at = now + CHECK_SECONDS
            self._update()
        return await self._identify(authorization)

    def _update(self) -> None:
        version = _version(self._path)
        if version == self._version:
            return
        self._version = version
        try:
            settings = read_settings(self._path)
        except ConfigError as error:
            self._report(f"{error}; the callers are those of before")
            return
        if (settings.views, settings.store) != (self._settings.views, self._settings.store):
            self._report(f"{self._path}: other views and another store hold from the next start on")
        self._identify = self._identify_of(settings)


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
