"""The names of tools and prompts for models and people. Pure.

`mcp__<server>__<tool>` consists of characters that every model API accepts, has at most 64 of them, is unique
in the pool, and is the same after every restart. One name belongs to one pair of server and tool.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final, NamedTuple, cast

from dragoman.names import RESERVED, QualifiedName, ServerName, WireToolName, plain

LIMIT: Final = 64
CONNECTOR: Final = "claude.ai "
"""The prefix of servers of an organisation's list; their names are names of products, with irregular
spacing."""
HASH_LENGTHS: Final = (0, 8, 16, 32)
"""The lengths of the hash that distinguishes tools: usually none, and longer ones while two names would be
equal."""

NEAR_LIMIT: Final = 500
"""The maximum number of names that are compared to find one similar to an unknown name; more would take too
long."""

_ALL_LEGAL = re.compile(r"[a-zA-Z0-9_-]*")
_RUN = re.compile(r"_+")
_LIKE_LONGEST_HASH = re.compile(rf"_[0-9a-f]{{{HASH_LENGTHS[-1]}}}\Z")

Key = tuple[ServerName, WireToolName]


@lru_cache(maxsize=4096)
def prefix(server: str) -> str:
    """The prefix of the names of all tools and prompts of this server, unless they are too long."""
    part = plain(server)
    if server.startswith(CONNECTOR):
        part = _RUN.sub("_", part).strip("_")
    return f"{RESERVED}{part}__"


def qualify(server: str, tool: str, hash_length: int = 0) -> QualifiedName:
    """The tool's name in the pool. A hash distinguishes it from an equal name, or replaces the part that does
    not fit."""
    full = f"{prefix(server)}{plain(tool)}"
    if not hash_length:
        if len(full) <= LIMIT:
            return QualifiedName(full)
        hash_length = HASH_LENGTHS[1]
    digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:hash_length]
    return QualifiedName(f"{full[: LIMIT - hash_length - 1]}_{digest}")


class Names(NamedTuple):
    """The names of a pool, and the tools that could not get the name they would have on their own."""

    of: Mapping[Key, QualifiedName]
    renamed: frozenset[Key]


def assign(tools: Iterable[Key], servers: Iterable[str] = ()) -> Names:
    """Names for a whole pool. All tools that would have the same name get a hash, so no name depends on the
    order.

    `servers`: all that are configured. A name that a tool of another server could also have gets a hash from
    the beginning, even while the other server is not connected, so that the name does not change when it
    connects.
    """
    names = _alone(list(tools))
    renamed = _doubtful(names, servers)
    names.update({tool: qualify(*tool, HASH_LENGTHS[1]) for tool in renamed})
    for longer in HASH_LENGTHS[1:]:
        if len(set(names.values())) == len(names):
            break
        uses = Counter(names.values())
        sharing = {tool for tool, name in names.items() if uses[name] > 1}
        if longer == HASH_LENGTHS[-1]:
            # No hash is longer. A name that only looks like one with a hash must not be mistaken for it.
            sharing |= {tool for tool, name in names.items() if _LIKE_LONGEST_HASH.search(name)}
        names.update({tool: qualify(*tool, longer) for tool in sharing})
        renamed |= sharing
    return Names(names, frozenset(renamed))


def _doubtful(names: Mapping[Key, QualifiedName], servers: Iterable[str]) -> set[Key]:
    """Tools whose name could belong to another server: servers with similar names, or tool `b__c` of server
    `a` beside server `a__b`."""
    uses = Counter(map(prefix, servers))
    # In sorted order, a prefix of another prefix comes directly before one of those that begin with it.
    is_any_nested = any(other.startswith(start) for start, other in pairwise(sorted(uses)))
    if not is_any_nested and len(uses) == uses.total():
        return set()
    return {
        key
        for key, name in names.items()
        if uses[start := prefix(key[0])] > 1 or (is_any_nested and _begins_like_another(name, start, uses))
    }


def _begins_like_another(name: str, start: str, prefixes: Container[str]) -> bool:
    """Whether the name begins with a longer prefix than that of its own server."""
    end = name.find("__", len(start) - 1)
    while end >= 0:
        if name[: end + len("__")] in prefixes:
            return True
        end = name.find("__", end + 1)
    return False


def _alone(tools: Sequence[Key]) -> dict[Key, QualifiedName]:
    """The name that each tool would have on its own. There may be ten thousand, and most need no further
    check."""
    if _ALL_LEGAL.fullmatch("".join([tool for _, tool in tools])):
        full = cast("dict[Key, QualifiedName]", {key: prefix(key[0]) + key[1] for key in tools})
        long = [key for key, name in full.items() if len(name) > LIMIT]
        return {**full, **{key: qualify(*key) for key in long}} if long else full
    return {key: qualify(*key) for key in tools}


def near(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Similar names of the same server, as suggestions."""
    import difflib  # needed only for the message about an unknown name

    server = name.rpartition("__")[0]
    candidates = islice((other for other in known if other.startswith(server)), NEAR_LIMIT)
    return tuple(difflib.get_close_matches(name[: 2 * LIMIT], candidates, n=3))
