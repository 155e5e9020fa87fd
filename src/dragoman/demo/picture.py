"""A small picture, encoded as PNG with the standard library only."""

from __future__ import annotations

import struct
import zlib

Pixel = tuple[int, int, int]


def paint(size: int) -> bytes:
    """The picture as PNG: a sunset over water."""
    rows = [b"\0" + b"".join(bytes(_colour(x, y, size)) for x in range(size)) for y in range(size)]
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(b"".join(rows), 9))
        + _chunk(b"IEND", b"")
    )


def pixels(size: int) -> list[list[Pixel]]:
    """The picture as rows of colours, for terminals."""
    return [[_colour(x, y, size) for x in range(size)] for y in range(size)]


def _colour(x: int, y: int, size: int) -> Pixel:
    across, down = (x + 0.5) / size - 0.5, (y + 0.5) / size
    distance = (across**2 + (down - 0.52) ** 2) ** 0.5
    if down < 0.6:
        if distance < 0.2:
            return (255, 226, 150)
        glow = max(0.0, 1 - distance * 1.6)
        return (int(40 + 200 * glow), int(36 + 110 * glow * down), int(92 + 60 * (1 - down)))
    glitter = abs(across) < 0.16 - (down - 0.6) * 0.2 and (y + x // 3) % 3 == 0
    depth = (down - 0.6) / 0.4
    return (250, 200, 120) if glitter else (int(60 - 30 * depth), int(52 - 20 * depth), int(110 - 40 * depth))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
