"""How a server's tools and prompts are called by models and people. Pure.

I own: `mcp__<server>__<tool>`, made of characters every model API takes, at most 64 long, unique in
the pool, and the same after every restart. One name stands for one pair, so the pool finds the way back.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from dragoman.names import QualifiedName, ServerName, WireToolName

LIMIT: Final = 64
RESERVED: Final = "mcp__"
"""How every name of a server's thing begins, and no other name may."""
CONNECTOR: Final = "claude.ai "
"""How the servers of an organisation's list are called; theirs are names of products, with odd spacing."""
HASH_LENGTHS: Final = (0, 8, 16, 32)
"""How much of a hash sets a tool apart: none usually, more for as long as two would share a name."""

_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
_ALL_LEGAL = re.compile(r"[a-zA-Z0-9_-]*")
_RUN = re.compile(r"_+")

Key = tuple[ServerName, WireToolName]


def plain(name: str) -> str:
    """The name in the characters that model APIs take."""
    return _FORBIDDEN.sub("_", name)


@lru_cache(maxsize=256)
def prefix(server: str) -> str:
    """How all names of this server's things begin, unless they are too long."""
    part = plain(server)
    if server.startswith(CONNECTOR):
        part = _RUN.sub("_", part).strip("_")
    return f"{RESERVED}{part}__"


def qualify(server: str, tool: str, hash_length: int = 0) -> QualifiedName:
    """The tool's name in the pool; a hash tells it from a namesake, or stands for what does not fit."""
    full = f"{prefix(server)}{plain(tool)}"
    if not hash_length:
        if len(full) <= LIMIT:
            return QualifiedName(full)
        hash_length = HASH_LENGTHS[1]
    digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:hash_length]
    return QualifiedName(f"{full[: LIMIT - hash_length - 1]}_{digest}")


class Names(NamedTuple):
    """A pool's names, and who could not have the name it would have alone."""

    of: Mapping[Key, QualifiedName]
    renamed: frozenset[Key]


def assign(tools: Iterable[Key], servers: Iterable[str] = ()) -> Names:
    """Names for a whole pool. All who would share a name get a hash, so none depends on the order.

    `servers`: all that are configured. Where two of them look alike, their tools have hashes from the
    beginning, so that no name changes when the second one connects.
    """
    names = _alone(list(tools))
    crowded = {start for start, uses in Counter(map(prefix, servers)).items() if uses > 1}
    sharing = {tool for tool in names if prefix(tool[0]) in crowded} if crowded else set[Key]()
    renamed = set[Key]()
    for longer in HASH_LENGTHS[1:]:
        if len(set(names.values())) < len(names):
            uses = Counter(names.values())
            sharing |= {tool for tool, name in names.items() if uses[name] > 1}
        if not sharing:
            break
        names.update({tool: qualify(*tool, longer) for tool in sharing})
        renamed |= sharing
        sharing = set[Key]()
    return Names(names, frozenset(renamed))


def _alone(tools: Sequence[Key]) -> dict[Key, QualifiedName]:
    """The name each would have by itself. There may be ten thousand, and most need no second look."""
    if _ALL_LEGAL.fullmatch("".join([tool for _, tool in tools])):
        full = {key: QualifiedName(prefix(key[0]) + key[1]) for key in tools}
        long = [key for key, name in full.items() if len(name) > LIMIT]
        return {**full, **{key: qualify(*key) for key in long}} if long else full
    return {key: qualify(*key) for key in tools}
