"""Which era each server was last found to speak: a small file of verdicts, so that a legacy server is not
probed each time. A verdict is a convenience: it may be lost, it expires, and a wrong one corrects itself. One
that rests on a time-out is not stored in the file: it applies to the reconnects of one host.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from dragoman import paths
from dragoman.atomic_write import write_cache
from dragoman.clock import Clock
from dragoman.config.file_reading import read_bytes
from dragoman.errors import ConfigFileError
from dragoman.wire.codec import DECODE_ERRORS

KEPT_SECONDS: Final = 7 * 24 * 3600
KEPT_VERDICTS: Final = 500


class EraVerdict(msgspec.Struct, frozen=True):
    era: str
    at: float


class EraMemory:
    def __init__(self, clock: Clock, folder: Callable[[], Path] = paths.state_dir) -> None:
        self._clock = clock
        self._path = folder() / "eras.json"
        self._verdicts: dict[str, EraVerdict] | None = None
        self._until_end: dict[str, str] = {}
        """Verdicts that apply until this host ends."""

    def recall(self, fingerprint: str) -> str | None:
        if fingerprint in self._until_end:
            return self._until_end[fingerprint]
        verdict = self._load().get(fingerprint)
        fresh = verdict is not None and 0 <= self._clock.now() - verdict.at < KEPT_SECONDS
        return verdict.era if verdict is not None and fresh else None

    def remember(self, fingerprint: str, era: str, *, until_end: bool = False) -> None:
        """`until_end`: for as long as this host, and not in the file."""
        if self.recall(fingerprint) == era:
            return
        self._until_end.pop(fingerprint, None)
        if until_end:
            self._until_end[fingerprint] = era
            return
        # Read again: another host may have written since.
        self._verdicts = None
        verdicts = self._load()
        verdicts.pop(fingerprint, None)
        verdicts[fingerprint] = EraVerdict(era, self._clock.now())
        while len(verdicts) > KEPT_VERDICTS:
            del verdicts[next(iter(verdicts))]
        self._save(verdicts)

    def forget(self, fingerprint: str) -> None:
        self._until_end.pop(fingerprint, None)
        self._verdicts = None
        verdicts = self._load()
        if verdicts.pop(fingerprint, None) is not None:
            self._save(verdicts)

    def _load(self) -> dict[str, EraVerdict]:
        if self._verdicts is None:
            self._verdicts = {}
            with contextlib.suppress(ConfigFileError, *DECODE_ERRORS):
                if data := read_bytes(self._path):
                    self._verdicts = msgspec.json.decode(data, type=dict[str, EraVerdict])
        return self._verdicts

    def _save(self, verdicts: dict[str, EraVerdict]) -> None:
        write_cache(self._path, msgspec.json.encode(verdicts))
