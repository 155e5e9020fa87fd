"""Decides which saved files are removed for a new one. Pure.

Each server has a share of its own, so that none uses up what others need; all shares together are bounded as
well. The oldest files are removed first. A file whose handle was given out in this process is kept for at
least an hour, and longer while other files can be removed instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

SPARED_SECONDS: Final = 3600.0


class SavedFile(Struct, frozen=True):
    name: str
    saved_at: float
    size: int
    owner: str
    """The server whose share contains the file."""
    is_handed_out: bool = False


class Room(Struct, frozen=True):
    """A limit on files and bytes, and the bytes that are reserved in addition to the existing files."""

    files: int
    size_bytes: int
    reserved_bytes: int = 0


class Full(Exception):
    def __init__(self, files: int, size_bytes: int, *, is_share: bool) -> None:
        super().__init__("no room")
        self.files = files
        self.size_bytes = size_bytes
        self.is_share = is_share
        """Whether the owner's share is full, not the whole space."""


def to_remove(
    files: Iterable[SavedFile], owner: str, *, now: float, share: Room, total: Room, keep_seconds: float
) -> set[str]:
    """The names of the files to remove before one of the owner's is written; `Full` if that is not enough."""
    files = sorted(files, key=lambda file: (file.is_handed_out, file.saved_at))
    removed = {file.name for file in files if now - file.saved_at > keep_seconds}
    left = [file for file in files if file.name not in removed]
    own = [file for file in left if file.owner == owner]
    removed |= _removed(own, _may_go(own, now), share, is_share=True)
    left = [file for file in left if file.name not in removed]
    used = Counter(file.owner for file in left)
    if _is_over(total, len(left) - 1, sum(file.size for file in left)):  # the limit on bytes is reached
        used = Counter[str]()
        for file in left:
            used[file.owner] += file.size
    greedy = sorted(_may_go(left, now), key=lambda file: (file.is_handed_out, -used[file.owner]))
    return removed | _removed(left, greedy, total, is_share=False)


def _may_go(files: Sequence[SavedFile], now: float) -> list[SavedFile]:
    return [file for file in files if not file.is_handed_out or now - file.saved_at > SPARED_SECONDS]


def _is_over(room: Room, files: int, size_bytes: int) -> bool:
    return files >= room.files or size_bytes + room.reserved_bytes > room.size_bytes


def _removed(
    files: Sequence[SavedFile], candidates: Sequence[SavedFile], room: Room, *, is_share: bool
) -> set[str]:
    """The first candidates, as many as needed."""
    count, size = len(files), sum(file.size for file in files)
    removed: set[str] = set()
    for file in candidates:
        if not _is_over(room, count, size):
            break
        removed.add(file.name)
        count, size = count - 1, size - file.size
    if _is_over(room, count, size):
        raise Full(count, size, is_share=is_share)
    return removed
