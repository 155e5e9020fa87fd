"""Newline-delimited framing in linear time and bounded memory.

Splits a byte stream at 0x0A only (U+2028 or a lone CR inside a string are not line ends), and enforces the
size limit. Of a line over the limit only head and tail are kept, so that the request it answers can be found.
A line over `FLOOD_FACTOR` limits is a flood and raises. A long line is never in memory twice, not even when
its last part is appended.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Final

END_BYTES: Final = 4096
FLOOD_FACTOR: Final = 4
LONG_BYTES: Final = 1024 * 1024
"""A line longer than this grows in one buffer: joining its parts would take its size once more."""


class Flood(Exception):
    """The stream exceeds the limit without a line end."""


class LineFramer:
    def __init__(
        self,
        on_line: Callable[[bytes], None],
        on_oversized: Callable[[bytes, bytes], bool],
        limit_bytes: int,
    ) -> None:
        self._on_line = on_line
        self._on_oversized = on_oversized
        self._limit_bytes = limit_bytes
        self._parts: list[bytes] = []
        self._buffer: io.BytesIO | None = None
        """The buffer of a long line, instead of its parts."""
        self._size = 0
        self._head: bytes | None = None
        """The head of a line that is already over the limit; None otherwise."""
        self._settled = False
        """Whether the request of the oversized line has already been found."""

    def feed(self, data: bytes) -> None:
        """Takes data that was read, and delivers the lines that it completes."""
        lines, rest = self.split(data)
        self.deliver(lines)
        self.keep(rest)

    def split(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Splits data that was read into the lines that it completes, for `deliver`, and the rest, for
        `keep`."""
        if b"\n" not in data:
            return [], data
        lines = data.split(b"\n")
        rest = lines.pop()
        if self._size:
            self.keep(lines[0])
            lines[:1] = filter(None, [self._finish()])
        return lines, rest

    def deliver(self, lines: Iterable[bytes]) -> int:
        """Delivers complete lines in order; returns how many were blank and left out."""
        on_line, limit_bytes = self._on_line, self._limit_bytes
        blank = 0
        for line in lines:
            if len(line) > limit_bytes:
                self._on_oversized(line[:END_BYTES], line[-END_BYTES:])
            elif line:
                on_line(line)
            else:
                blank += 1
        return blank

    def end(self) -> None:
        """Handles the end of the stream: bytes without a line end are the last line."""
        if self._size and (line := self._finish()):
            self._on_line(line)

    def keep(self, data: bytes) -> None:
        """Keeps the beginning, or a further part, of an incomplete line."""
        if not data:
            return
        self._size += len(data)
        if self._buffer is None:
            self._parts.append(data)
        else:
            self._buffer.write(data)
        if self._size <= self._limit_bytes:
            if self._size > LONG_BYTES and self._buffer is None:
                self._buffer = io.BytesIO()
                self._buffer.writelines(self._parts)
                self._parts = []
            return
        line = self._taken()
        if self._head is None:
            self._head = line[:END_BYTES]
            # Reported at once: the rest of the line may never come.
            self._settled = self._on_oversized(self._head, b"")
        self._parts = [line[-END_BYTES:]]
        if self._size > FLOOD_FACTOR * self._limit_bytes:
            raise Flood

    def _finish(self) -> bytes:
        """The line that is now complete; empty if it was over the limit."""
        line, head = self._taken(), self._head
        self._size, self._head = 0, None
        if head is None:
            return line
        if not self._settled:
            self._on_oversized(head, line[-END_BYTES:])
        return b""

    def _taken(self) -> bytes:
        """Returns the kept bytes of the line, and clears them."""
        if self._buffer is not None:
            line = self._buffer.getvalue()  # the buffer's own bytes, not a copy
        else:
            line = b"".join(self._parts)
        self._parts, self._buffer = [], None
        return line
