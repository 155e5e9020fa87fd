"""Addresses of resources (URIs), as far as they are looked at. Pure.

I own: which are taken from servers and sent to them. They are sent back letter by letter, so nothing in them
is cleaned or repaired: one that a person could not see in full is not used.
"""

from __future__ import annotations

from typing import Final

from dragoman.cleaning import is_safe

URI_LIMIT: Final = 8192


def is_usable(uri: str) -> bool:
    """Whether it is short and has nothing invisible in it. Spaces are wrong, and common."""
    return 0 < len(uri) <= URI_LIMIT and is_safe(uri) and "\n" not in uri and "\t" not in uri


def is_part_of(uri: str, whole: str) -> bool:
    """Whether it is the resource itself, or something inside it."""
    if uri == whole:
        return True
    stem = whole.rstrip("/")
    return len(uri) > len(stem) and uri.startswith(stem) and uri[len(stem)] in "/?#"
