"""Tokens that settings give as text, or as `@` and the file that holds them."""

from __future__ import annotations

import asyncio
from typing import Final

from dragoman.auth.errors import Refused
from dragoman.private_files import read_regular

LIMIT_BYTES: Final = 64 * 1024


async def given_token(value: str, field: str) -> str:
    """The token. `field`: the setting that names it, for errors."""
    if not value.startswith("@"):
        return value
    try:
        data = await asyncio.to_thread(read_regular, value[1:], LIMIT_BYTES)
        token = data.decode("ascii").strip()
    except (OSError, ValueError) as error:  # ValueError: also a name or content that is not text
        raise Refused(f"the file of {field} cannot be read: {type(error).__name__}") from None
    if not token:
        raise Refused(f"the file of {field} is empty")
    return token
