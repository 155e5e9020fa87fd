"""Tokens that settings give as text, or as `@` and the file that holds them."""

from __future__ import annotations

import asyncio
import os
import stat
from typing import Final

from dragoman.auth.errors import Refused
from dragoman.private_files import CLOSE_ON_EXEC, NO_TERMINAL, NO_WAIT

LIMIT_BYTES: Final = 64 * 1024


async def given_token(value: str, field: str) -> str:
    """The token. `field`: the setting that names it, for errors."""
    if not value.startswith("@"):
        return value
    try:
        data = await asyncio.to_thread(_read, value[1:])
        token = data.decode("ascii").strip()
    except (OSError, ValueError) as error:  # ValueError: also a name or content that is not text
        raise Refused(f"the file of {field} cannot be read: {type(error).__name__}") from None
    if not token:
        raise Refused(f"the file of {field} is empty")
    return token


def _read(path: str) -> bytes:
    """Reads the file in bounded time, whatever the path is: a pipe, a device, a huge file."""
    descriptor = os.open(path, os.O_RDONLY | NO_WAIT | NO_TERMINAL | CLOSE_ON_EXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LIMIT_BYTES:
            raise OSError("not a file that can hold a token")
        return os.read(descriptor, LIMIT_BYTES)
    finally:
        os.close(descriptor)
