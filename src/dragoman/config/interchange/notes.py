"""Notes about what could not be converted, one for each case.

Text from a file is made visible here. A note contains names of servers, fields and variables, and never a
value of an entry.
"""

from __future__ import annotations

from msgspec import Struct

from dragoman.cleaning import one_line

_NAME_LIMIT = 200
_TEXT_LIMIT = 500


class Note(Struct, frozen=True, kw_only=True):
    """One thing that did not carry over, was translated with a loss, or should be read before it is used."""

    server: str | None
    field: str | None
    """The field as the file that was read, or our entry that was written, spells it."""
    text: str


class Unusable(Exception):
    """This server cannot be brought over. Ends the translation of one entry; never leaves this package."""

    def __init__(self, field: str | None, reason: str) -> None:
        super().__init__(reason)
        self.field = field
        self.reason = reason


class Notebook:
    """Collects notes; the same thing is noted once."""

    def __init__(self) -> None:
        self._notes: dict[Note, None] = {}

    def add(self, server: str | None, field: str | None, text: str) -> None:
        note = Note(server=_short(server), field=_short(field), text=one_line(text, _TEXT_LIMIT))
        self._notes[note] = None

    def take(self, other: Notebook) -> None:
        self._notes.update(other._notes)

    def page(self, server: str) -> Page:
        return Page(self, server)

    def notes(self) -> tuple[Note, ...]:
        return tuple(self._notes)


class Page:
    """The notebook, open at one server."""

    def __init__(self, book: Notebook, server: str) -> None:
        self._book = book
        self._server = server

    def say(self, field: str | None, text: str) -> None:
        self._book.add(self._server, field, text)


def silent_page() -> Page:
    """A page whose notes are discarded."""
    return Notebook().page("")


def _short(name: str | None) -> str | None:
    return None if name is None else one_line(name, _NAME_LIMIT)
