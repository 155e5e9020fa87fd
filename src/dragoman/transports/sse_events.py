"""Parser for server-sent events, in linear time and bounded memory.

Covers the format (line ends, fields, comments, byte order mark), the last event id, the reconnection time,
and the size limit. Events are not interpreted. The result does not depend on how the stream is divided into
chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

END_BYTES: Final = 4096
FLOOD_FACTOR: Final = 4
LONGEST_RETRY_MS: Final = 60_000
LONGEST_ID_BYTES: Final = 4096
"""The maximum size of an event id: it is sent back in a header, and servers accept only a few kilobytes of
headers."""
PREFIX_BYTES: Final = len(b"data: ")
FIELD_LINES: Final = 16
"""The maximum number of lines of one event besides its data: its type, its id, and the reconnection time."""
PIECE_BYTES: Final = 8 * 1024
"""Chunks are read in pieces of this size: a larger piece could contain so many events that it blocks the
event loop."""

_BOM: Final = b"\xef\xbb\xbf"
_CR: Final = 0x0D
_LF: Final = 0x0A


class SseEvent(Struct, frozen=True):
    kind: str = "message"
    data: bytes = b""
    id: str | None = None
    """The last event id as of this event."""


class EventTooLarge(Exception):
    """An event is over the limit. The parser is of no further use."""

    def __init__(self, before: list[SseEvent], head: bytes) -> None:
        super().__init__("an event is larger than the limit")
        self.before = before
        """The complete events directly before it."""
        self.head = head
        """The beginning of the event."""


def in_pieces(chunk: bytes) -> Iterator[bytes]:
    """The chunk, or its pieces: the event loop can run between two pieces."""
    if len(chunk) <= PIECE_BYTES:
        yield chunk
        return
    for start in range(0, len(chunk), PIECE_BYTES):
        yield chunk[start : start + PIECE_BYTES]


class _Oversized:
    """The state of an oversized event while it is skipped."""

    def __init__(self, head: bytes, tail: bytes, size: int, *, at_line_start: bool) -> None:
        self.head = head
        self.tail = tail
        self.size = size
        self.at_line_start = at_line_start
        self.is_settled = False


class SseParser:
    """Feed it chunks; it returns events.

    An event over the limit raises, unless there is an `on_oversized`: then that is given its head at once and
    its head and tail at its end (unless it returned True before), and the stream continues. An event over
    `FLOOD_FACTOR` limits always raises.
    """

    def __init__(self, limit_bytes: int, on_oversized: Callable[[bytes, bytes], bool] | None = None) -> None:
        self.last_id: str | None = None
        self.retry_ms: int | None = None
        self.idle_lines = 0
        """Lines so far that belong to no event: comments, unknown fields, blank lines after nothing, fields
        that an event repeats."""
        self._limit_bytes = limit_bytes
        self._on_oversized = on_oversized
        self._pending = bytearray()
        """The beginning of an incomplete line. Not a list: tiny chunks would take far more memory."""
        self._is_first_line = True
        self._after_cr = False
        """The last byte was CR, so a following LF belongs to the same line end."""
        self._kind = "message"
        self._data: bytes | bytearray | None = None
        self._id: str | None = None
        self._has_id = False
        """Whether the event that is being read names an id."""
        self._field_lines = 0
        """Lines of the event that is being read with a field other than its data."""
        self._over: _Oversized | None = None

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that are now complete: those with data, and those that only set an id."""
        events: list[SseEvent] = []
        while chunk:
            if self._after_cr:
                self._after_cr = False
                chunk = chunk[1:] if chunk[0] == _LF else chunk
            elif self._over is None:
                chunk = self._read(chunk, events)
            else:
                chunk = self._skip(chunk, self._over, events)
        return events

    def _read(self, text: bytes, events: list[SseEvent]) -> bytes:
        """Reads the input up to an event over the limit; returns the unread rest."""
        if self._pending:
            is_line_end = b"\n" in text or b"\r" in text
            self._pending += text
            if not is_line_end:
                return self._check_pending(events)
            text = bytes(self._pending)
            self._pending.clear()
        lines = self._split(text)
        for number, line in enumerate(lines):
            if not self._line(line, events):
                return self._rest(lines[number + 1 :])
        return self._check_pending(events)

    def _split(self, text: bytes) -> list[bytes]:
        """The complete lines; what follows the last line end stays pending."""
        if b"\r" not in text:
            lines = text.split(b"\n")  # several times as fast as `splitlines`
            self._pending += lines.pop()
            return lines
        # Of bytes, this splits at CR, LF and CRLF only; of text, it would split at U+2028 and others too.
        lines = text.splitlines()
        self._after_cr = text[-1] == _CR
        if text[-1] not in (_CR, _LF):
            self._pending += lines.pop()
        return lines

    def _rest(self, lines: list[bytes]) -> bytes:
        """The bytes after an event over the limit, to be parsed from the start."""
        rest = b"".join(line + b"\n" for line in lines)
        if self._after_cr and rest:
            self._after_cr = False
            rest = rest[:-1] + b"\r"
        rest += self._pending
        self._pending.clear()
        return rest

    def _line(self, line: bytes, events: list[SseEvent]) -> bool:
        """Takes one line. Returns False if it makes the event too large."""
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BOM)
        if line.startswith(b"data:"):
            return self._add(line[6:] if line[5:6] == b" " else line[5:], events)
        if not line:
            self._dispatch(events)
            return True
        if len(line) > self._limit_bytes + PREFIX_BYTES:
            self._start_skipping(line, events, at_line_start=True)
            return False
        name, _, value = line.partition(b":")
        if name == b"data":
            return self._add(b"", events)
        self._field(name, value.removeprefix(b" "))
        return True

    def _add(self, value: bytes, events: list[SseEvent]) -> bool:
        data = self._data
        if data is None:
            self._data = data = value
        else:
            if isinstance(data, bytes):
                self._data = data = bytearray(data)
            data += b"\n"
            data += value
        if len(data) <= self._limit_bytes:
            return True
        self._start_skipping(bytes(data), events, at_line_start=True)
        return False

    def _field(self, name: bytes, value: bytes) -> None:
        self._field_lines += 1
        if self._field_lines > FIELD_LINES:
            self.idle_lines += 1
            return
        match name:
            case b"event":
                self._kind = value.decode("utf-8", "replace") or "message"
            case b"id":
                if b"\0" not in value and len(value) <= LONGEST_ID_BYTES:
                    self._id = value.decode("utf-8", "replace") or None
                    self._has_id = True
            case b"retry":
                if value.isdigit():
                    digits = value.lstrip(b"0") or b"0"
                    # Python refuses to convert very long numbers to an int, and it would be slow.
                    self.retry_ms = min(int(digits[:9]), LONGEST_RETRY_MS)
            case _:
                self.idle_lines += 1  # a comment, or an unknown field

    def _dispatch(self, events: list[SseEvent]) -> None:
        self.last_id = self._id
        if self._data is not None or self._has_id:
            events.append(SseEvent(self._kind, bytes(self._data or b""), self._id))
        else:
            self.idle_lines += 1
        self._reset()

    def _reset(self) -> None:
        self._kind = "message"
        self._data = None
        self._has_id = False
        self._field_lines = 0

    def _check_pending(self, events: list[SseEvent]) -> bytes:
        mark = len(_BOM) if self._is_first_line and self._pending.startswith(_BOM) else 0
        if len(self._pending) > self._limit_bytes + PREFIX_BYTES + mark:
            line = bytes(self._pending)
            self._pending.clear()
            self._is_first_line = False
            data = line.removeprefix(b"data:").removeprefix(b" ")
            self._start_skipping(data, events, at_line_start=False)
        return b""

    def _start_skipping(self, data: bytes, events: list[SseEvent], *, at_line_start: bool) -> None:
        # Counted as seen: after resuming from the id before, the server would send the same event again.
        self.last_id = self._id
        self._reset()
        head = data[:END_BYTES]
        if self._on_oversized is None:
            raise EventTooLarge(events, head)
        self._over = over = _Oversized(head, data[-END_BYTES:], len(data), at_line_start=at_line_start)
        # Reported at once: the rest may never come.
        over.is_settled = self._on_oversized(head, b"")
        self._check_flood(over, events)

    def _skip(self, text: bytes, over: _Oversized, events: list[SseEvent]) -> bytes:
        """Searches for the empty line that ends the event; returns the rest after it."""
        position = 0
        for line in text.splitlines(keepends=True):
            is_empty = line[0] in (_CR, _LF)
            position += len(line)
            if is_empty and over.at_line_start:
                self._after_cr = line == b"\r" and position == len(text)
                self._stop_skipping(over, text[: position - len(line)])
                return text[position:]
            over.at_line_start = line[-1] in (_CR, _LF)
        self._after_cr = text[-1] == _CR
        over.tail = (over.tail + text[-END_BYTES:])[-END_BYTES:]
        over.size += len(text)
        self._check_flood(over, events)
        return b""

    def _stop_skipping(self, over: _Oversized, text: bytes) -> None:
        self._over = None
        if not over.is_settled and self._on_oversized is not None:
            tail = (over.tail + text[-END_BYTES:])[-END_BYTES:]
            self._on_oversized(over.head, tail.rstrip())

    def _check_flood(self, over: _Oversized, events: list[SseEvent]) -> None:
        if over.size > FLOOD_FACTOR * (self._limit_bytes + PREFIX_BYTES):
            raise EventTooLarge(events, over.head)
