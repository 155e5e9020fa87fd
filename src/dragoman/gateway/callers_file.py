"""The callers of a gateway, read again when its file changes.

A token that is removed from the file is refused after at most a second. A file that cannot be used changes
nothing, and is reported. Views and the store are read only at the start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from msgspec import structs

from dragoman.errors import ConfigError
from dragoman.gateway.access import Identify, KnownCaller
from dragoman.gateway.settings import GatewaySettings
from dragoman.gateway.settings_file import read_settings

CHECK_SECONDS: Final = 1.0
"""The shortest time between two checks of the file; requests cause them."""
RETRY_SHARE: Final = 50
"""An unusable file that has not changed is read again after this many times the duration of the last read:
reading a large file delays all requests."""


class _Version(NamedTuple):
    content: tuple[int, ...]
    """Changes with what is in the file; empty if there is no file."""
    access: tuple[int, ...]
    """Changes with who may read it."""


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
        self._content: tuple[int, ...] | None = None
        """The version of the content that was read last. The first request reads the file again: it may have
        changed."""
        self._check_at = 0.0
        self._refused: _Version | None = None
        """The version of the file that could not be used."""
        self._retry_at = 0.0
        self._problem = ""
        """Why it cannot be used, as it was reported."""

    async def identify(self, authorization: Sequence[str]) -> KnownCaller:
        now = monotonic()
        if now >= self._check_at:
            self._check_at = now + CHECK_SECONDS
            self._update()
        return await self._identify(authorization)

    def _update(self) -> None:
        version, started = _version(self._path), monotonic()
        if version.content == self._content or (version == self._refused and started < self._retry_at):
            return
        try:
            settings = read_settings(self._path)
        except ConfigError as error:
            # It is read again though it has not changed: the cause may end without a change of the file.
            self._refused, now = version, monotonic()
            self._retry_at = now + RETRY_SHARE * (now - started)
            if self._problem != str(error):
                self._problem = str(error)
                self._report(f"{error}; the callers before the change stay in effect")
            return
        self._content, self._problem = version.content, ""
        if _fixed_part(settings) != self._fixed:
            self._report(
                f"{self._path}: only callers and oauth are read again; "
                "other changes take effect at the next start"
            )
        self._identify = self._identify_of(settings)


def _fixed_part(settings: GatewaySettings) -> GatewaySettings:
    return structs.replace(settings, callers={}, oauth=None)


def _version(path: Path) -> _Version:
    try:
        status = path.stat()
    except OSError:
        return _Version((), ())
    return _Version(
        (status.st_mtime_ns, status.st_size, status.st_ino), (status.st_mode, status.st_uid, status.st_gid)
    )
