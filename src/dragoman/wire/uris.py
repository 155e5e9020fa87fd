"""Decides which resource URIs are accepted from servers and sent to them. Pure.

A URI is sent back unchanged, so nothing in it is cleaned or repaired: one that cannot be shown in full is not
used.
"""

from __future__ import annotations

from typing import Final

from dragoman.cleaning import is_safe

URI_LIMIT: Final = 8192


def is_usable(uri: str) -> bool:
    """Whether the URI is short and has no invisible characters. Spaces are invalid, but common, and
    accepted."""
    return 0 < len(uri) <= URI_LIMIT and is_safe(uri) and "\n" not in uri and "\t" not in uri


def is_part_of(uri: str, whole: str) -> bool:
    """Whether the URI is the resource itself, or a part of it."""
    if uri == whole:
        return True
    stem = whole.rstrip("/")
    return len(uri) > len(stem) and uri.startswith(stem) and uri[len(stem)] in "/?#"
