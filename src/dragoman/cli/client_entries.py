"""The configuration entries for MCP clients that use the gateway, in the format of each client."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

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
