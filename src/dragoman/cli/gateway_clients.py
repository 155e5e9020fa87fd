"""The configuration entries of MCP clients that use the gateway, and the generated token that they need."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dragoman import paths
from dragoman.atomic_write import write_file
from dragoman.cleaning import one_line
from dragoman.errors import ConfigError
from dragoman.private_files import is_open_to, is_own

CLIENTS: Final = ("claude-code", "codex", "cursor", "vscode")


def without_print_config(words: Sequence[str]) -> list[str]:
    pairs = zip(words, ("", *words))
    return [word for word, before in pairs if "--print-config" not in (word.partition("=")[0], before)]


def client_entry(client: str, url: str, token: str, words: Sequence[str]) -> str:
    """The entry for a client's configuration. `words`: the arguments of `serve` with which the client starts
    the gateway; empty: the client connects to the URL."""
    header = {"Authorization": f"Bearer {token or 'TOKEN'}"}
    args = ["serve", *words]
    command = _command()
    if words:
        entry: dict[str, object] = {"command": command, "args": args}
    else:
        entry = {"type": "http", "url": url, "headers": header}
    match client:
        case "codex":
            if words:
                return f"[mcp_servers.dragoman]\ncommand = {json.dumps(command)}\nargs = {json.dumps(args)}"
            headers = f'{{ Authorization = "{header["Authorization"]}" }}'
            return f'[mcp_servers.dragoman]\nurl = "{url}"\nhttp_headers = {headers}'
        case "vscode":
            return json.dumps({"servers": {"dragoman": entry}}, indent=2)
        case "cursor":
            entry.pop("type", None)
            return json.dumps({"mcpServers": {"dragoman": entry}}, indent=2)
        case _:
            return json.dumps({"mcpServers": {"dragoman": entry}}, indent=2)


def _command() -> str:
    """The command that starts this program without the PATH of an active virtual environment."""
    found = shutil.which("dragoman")
    has_environment = sys.prefix != sys.base_prefix
    if found is None or (has_environment and Path(found).is_relative_to(sys.prefix)):
        return os.path.abspath(found or sys.argv[0])
    return "dragoman"


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
