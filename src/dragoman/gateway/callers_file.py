"""The callers of a gateway, read again when its file changes: a token that is removed is refused immediately.

A file that cannot be used changes nothing, and is reported. Views and the store are read only at the start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Final

from msgspec import structs

from dragoman.errors import ConfigError
from dragoman.gateway.access import Identify, KnownCaller
from dragoman.gateway.settings import GatewaySettings
from dragoman.gateway.settings_file import read_settings

CHECK_SECONDS: Final = 1.0
"""The shortest time between two checks of the file; requests cause them."""


class CallersFile:
    """Identifies callers by the gateway's file, which is read again when it changes."""

    def __init__(
        self,
        path: Path,
        settings: GatewaySettings,
        identify_of: Callable[[GatewaySettings], Identify],
        report: Callable[[str], None],
    ) -> None:
        """`settings`: the content of the file at the start; `identify_of`: makes the check of callers from
        settings."""
        self._path = path
        self._fixed = _fixed_part(settings)
        """The settings that are read only at the start."""
        self._identify_of = identify_of
        self._identify = identify_of(settings)
        self._report = report
        self._version: tuple[int, ...] | None = ()
        """The version of the file that was read last. The first request reads the file again: it may have
        changed."""
        self._check_at = 0.0
        self._problem = ""
        """Why it cannot be used, as it was reported."""

    async def identify(self, authorization: Sequence[str]) -> KnownCaller:
        now = monotonic()
        if now >= self._check_at:
            self._check_at = now + CHECK_SECONDS
            self._update()
        return await self._identify(authorization)

    def _update(self) -> None:
        version = _version(self._path)
        if version == self._version:
            return
        try:
            settings = read_settings(self._path)
        except ConfigError as error:
            # Its version is not stored: the cause may end without a change of the file.
            if self._problem != str(error):
                self._problem = str(error)
                self._report(f"{error}; the callers before the change stay in effect")
            return
        self._version, self._problem = version, ""
        if _fixed_part(settings) != self._fixed:
            self._report(
                f"{self._path}: only callers and oauth are read again; "
                "other changes count from the next start on"
            )
        self._identify = self._identify_of(settings)


def _fixed_part(settings: GatewaySettings) -> GatewaySettings:
    return structs.replace(settings, callers={}, oauth=None)


def _version(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
