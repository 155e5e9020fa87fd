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
HASH_LENGTHS: Final = (0, 8, 16, 32)
"""How much of a hash sets a tool apart: none usually, more for as long as two would share a name."""

_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")

Key = tuple[ServerName, WireToolName]


def plain(name: str) -> str:
    """The name in the characters that model APIs take."""
    return _FORBIDDEN.sub("_", name)


def qualify(server: str, tool: str, hash_length: int = 0) -> QualifiedName:
    """The tool's name in the pool; a hash tells it from a namesake, or stands for what does not fit."""
    full = f"mcp__{plain(server)}__{plain(tool)}"
    if not hash_length:
        if len(full) <= LIMIT:
            return QualifiedName(full)
        hash_length = HASH_LENGTHS[1]
    digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:hash_length]
    return QualifiedName(f"{full[: LIMIT - hash_length - 1]}_{digest}")


def assign(tools: Iterable[Key]) -> Mapping[Key, QualifiedName]:
    """Names for a whole pool. All who would share a name get a hash, so none depends on the order."""
    names = {tool: qualify(*tool) for tool in tools}
    for longer in HASH_LENGTHS[1:]:
        uses = Counter(names.values())
        if len(uses) == len(names):
            break
        for tool in [tool for tool, name in names.items() if uses[name] > 1]:
            names[tool] = qualify(*tool, longer)
    return names
