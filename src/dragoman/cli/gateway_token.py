"""The generated token with which this person's clients use the gateway over HTTP."""

from __future__ import annotations

import re
import secrets
import stat
from pathlib import Path
from typing import Final

from dragoman import paths
from dragoman.atomic_write import write_file
from dragoman.cleaning import one_line
from dragoman.errors import ConfigError
from dragoman.private_files import is_open_to, is_own

TOKEN_FILE: Final = "gateway-token"
_TOKEN: Final = re.compile(r"[!-~]{16,}")


def generated_token() -> str:
    """The generated token of this person, created when it is first needed. Raises `ConfigError` if it cannot
    be stored, or if other users may know it."""
    path = paths.state_dir() / TOKEN_FILE
    try:
        token = _kept_token(path)
        if not token:
            token = secrets.token_urlsafe(32)
            paths.make_private(path.parent)
            write_file(path, token.encode() + b"\n", private=True)
    except OSError as error:
        raise ConfigError(
            f"the token of the gateway cannot be stored in {one_line(str(path))}: {error.strerror}",
            hint="Give --config with callers and their tokens, or another folder in DRAGOMAN_CONFIG_DIR.",
        ) from None
    return token


def _kept_token(path: Path) -> str:
    """The stored token; empty if there is no valid one."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return ""
    if not stat.S_ISREG(status.st_mode) or not is_own(status) or is_open_to(0o077, status):
        raise ConfigError(
            f"others may know the token of the gateway: {one_line(str(path))} is not a private file",
            hint="Delete the file: the next start generates a new token, which clients then need.",
        )
    token = path.read_bytes().strip().decode("ascii", "replace")
    return token if _TOKEN.fullmatch(token) else ""
