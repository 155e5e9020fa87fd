"""How a server's tool is called by models and people. Pure.

I own: `mcp__<server>__<tool>`, made of characters every model API takes, at most 64 long, unique in
the pool, and the same after every restart.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from dragoman.names import QualifiedName, ServerName, WireToolName

LIMIT: Final = 64
HASH_LENGTH: Final = 8
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")


def plain(name: str) -> str:
    """The name in the characters that model APIs take."""
    return _FORBIDDEN.sub("_", name)


def qualify(server: str, tool: str, *, distinct: bool = False) -> QualifiedName:
    """The tool's name in the pool; `distinct` adds a hash that tells it from a namesake."""
    full = f"mcp__{plain(server)}__{plain(tool)}"
    if not distinct and len(full) <= LIMIT:
        return QualifiedName(full)
    digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]
    return QualifiedName(f"{full[: LIMIT - HASH_LENGTH - 1]}_{digest}")


def assign(
    tools: Iterable[tuple[ServerName, WireToolName]],
) -> Mapping[tuple[ServerName, WireToolName], QualifiedName]:
    """Names for a whole pool. All who would share a name get a hash, so none depends on the order."""
    wanted = {tool: qualify(*tool) for tool in tools}
    uses = Counter(wanted.values())
    return {tool: name if uses[name] == 1 else qualify(*tool, distinct=True) for tool, name in wanted.items()}
