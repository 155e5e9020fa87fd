"""Configuration files of a person, written for a test."""

import json
from pathlib import Path
from typing import Any

from tests.servers import stdio_server

WELL_BEHAVED: dict[str, Any] = stdio_server("well_behaved.py")


def other_well_behaved() -> dict[str, Any]:
    """Another server of the same kind: another signature."""
    return {**WELL_BEHAVED, "args": [*WELL_BEHAVED["args"], "other"]}


class Desk:
    """Where each scope's file is, in a test's home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.project = home / "work"
        self.user_file = home / ".dragoman" / "settings.json"
        self.approvals_file = home / ".dragoman" / "approvals.json"
        self.project_file = self.project / ".mcp.json"
        self.local_file = self.project / ".dragoman" / "settings.local.json"
        self.managed_file = home / "managed" / "managed-mcp.json"

    def plugin_file(self, plugin: str) -> Path:
        return self.home / ".dragoman" / "plugins" / plugin / ".mcp.json"

    def write(self, path: Path, servers: dict[str, Any] | None = None, **more: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        block = {} if servers is None else {"mcpServers": servers}
        path.write_text(json.dumps({**block, **more}, indent=2))

    def user(self, servers: dict[str, Any] | None = None, **more: Any) -> None:
        self.write(self.user_file, servers, **more)

    def in_project(self, servers: dict[str, Any] | None = None, **more: Any) -> None:
        self.write(self.project_file, servers, **more)

    def local(self, servers: dict[str, Any] | None = None, **more: Any) -> None:
        self.write(self.local_file, servers, **more)

    def managed(self, servers: dict[str, Any] | None = None, **more: Any) -> None:
        self.write(self.managed_file, servers, **more)
