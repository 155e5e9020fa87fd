"""The log of a gateway: the steps of its start, its end, and messages for its operator, as JSON lines.

The audit log has the calls, and each server has its own log.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman import log_files
from dragoman.cleaning import one_line
from dragoman.log_files import LogThread, stamp

FILE: Final = "gateway.jsonl"
FILE_LIMIT_BYTES: Final = 4 * 1024 * 1024
FILES_KEPT: Final = 4
TEXT_LIMIT: Final = 1000


class GatewayLog:
    """Lines are written by a thread. A file that cannot be written is reported once."""

    def __init__(self, folder: Path, report: Callable[[str], None]) -> None:
        self.path = folder / FILE
        self._report = report
        self._thread = LogThread[bytes]("dragoman gateway log", self._write_batch)
        self._is_reported = False

    def write(self, event: str, text: str, **values: int) -> None:
        """`event`: `configuration`, `logging`, `transport`, `accept`, `handle` (the steps of the start),
        `problem` or `end`."""
        line: dict[str, Any] = {"time": stamp(int(time.time() * 1000)), "pid": os.getpid(), "event": event}
        self._thread.put(msgspec.json.encode({**line, "text": one_line(text, TEXT_LIMIT), **values}) + b"\n")

    def close(self) -> None:
        """Returns when everything is written. Waits for the disk: call it in a thread."""
        self._thread.close()

    def _write_batch(self, batch: list[bytes]) -> None:
        try:
            data = b"".join(batch)
            log_files.append(self.path, data, limit_bytes=FILE_LIMIT_BYTES, kept=FILES_KEPT)
        except OSError as error:  # border: the disk
            if not self._is_reported:
                why = f"the log {one_line(str(self.path))} cannot be written: {error.strerror or error}"
                self._thread.call_on_loop(self._report, why)
            self._is_reported = True
