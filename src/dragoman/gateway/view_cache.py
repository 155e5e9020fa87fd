"""Caches values about the tools of views until a list changes: of the shared servers, or of one caller's
servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.gateway.tool_search import FoundTools

Key = tuple[object, str]
"""The rights of a caller, and a view."""


class ViewCache:
    def __init__(self) -> None:
        self.names: dict[str, dict[str, str]] = {}
        """By view, and by the name that clients use: the qualified name of a tool."""
        self.instructions: dict[Key, str | None] = {}
        """The instructions of servers."""
        self.found: dict[Key, FoundTools] = {}
        """Searchable tools."""
        self.version = 0
        """How often it was cleared. Of a caller's own: the version of the shared one that it depends on."""

    def clear(self) -> None:
        self.names.clear()
        self.instructions.clear()
        self.found.clear()
