"""The names and URIs under which clients of the gateway see tools, prompts and resources. Pure.

A tool `mcp__files__read` is `files__read` for clients, which add the name of the gateway themselves; with
plain names it is `read`, where no other server has, or had before, a tool of that name. A resource keeps its
URI unless two servers have the same, or another server's template covers it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, MutableMapping
from typing import Final, Protocol, TypeVar

from dragoman.catalog.naming import prefix
from dragoman.catalog.resources import ResourceTemplate

PREFIX: Final = "mcp__"
_SERVER_URI: Final = "mcp-server:"
OWNER_LIMIT: Final = 100_000
"""Plain names whose server is remembered; more are not given."""

Owners = MutableMapping[str, str]
"""By plain name: the server that had it first; empty if several wanted it from the beginning."""


class Named(Protocol):
    @property
    def server(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def wire_name(self) -> str: ...


class Located(Protocol):
    @property
    def server(self) -> str: ...


N = TypeVar("N", bound=Named)
L = TypeVar("L", bound=Located)


def exposed(
    things: Iterable[N],
    *,
    plain: bool,
    taken: Collection[str] = (),
    owners: Owners | None = None,
    servers: Iterable[str] = (),
) -> dict[str, N]:
    """By the name that clients use, in the same order. `taken`: plain names that none of them may have.

    `owners`: the names that were given before; it is updated. A client continues to call, and perhaps has
    allowed, a name that it knows: when its server is removed, no other server gets the name. `servers`: all
    that are configured; no plain name begins as the whole names of another of them do.
    """
    things = list(things)
    whole = [thing.name.removeprefix(PREFIX) for thing in things]
    # A tool of one server may be called like another's with its prefix.
    counts = Counter(thing.wire_name for thing in things) + Counter(whole)
    starts = {server: prefix(server).removeprefix(PREFIX) for server in servers}
    every_start = tuple(starts.values())
    owners = {} if owners is None else owners

    def is_plain(thing: N) -> bool:
        name = thing.wire_name
        if name.startswith(every_start) and any(
            name.startswith(start) for server, start in starts.items() if server != thing.server
        ):
            return False
        if name in taken or (name not in owners and len(owners) >= OWNER_LIMIT):
            return False
        owner = owners.setdefault(name, thing.server if counts[name] == 1 else "")
        return counts[name] == 1 and owner == thing.server

    return {
        thing.wire_name if plain and is_plain(thing) else name: thing for name, thing in zip(whole, things)
    }


def exposed_uris(
    things: Iterable[L], uri_of: Callable[[L], str], templates: Iterable[ResourceTemplate] = ()
) -> dict[str, L]:
    """Resources or templates by the URI that clients use: their own, or one that names the server as well. A
    URI that already has this second form gets the server's name once more: it could otherwise mean another
    server's resource. So does one that a template of another server, among `templates`, covers."""
    things, templates = list(things), list(templates)
    counts = Counter(map(uri_of, things))

    def uri_for_clients(thing: L) -> str:
        uri = uri_of(thing)
        is_own = counts[uri] == 1 and not uri.startswith(_SERVER_URI)
        is_own = is_own and not any(each.server != thing.server and each.matches(uri) for each in templates)
        return uri if is_own else with_server(thing.server, uri)

    return {uri_for_clients(thing): thing for thing in things}


def with_server(server: str, uri: str) -> str:
    return f"{_SERVER_URI}{server}:{uri}"


def server_in(uri: str) -> tuple[str, str] | None:
    """The server and the resource's own URI in one that names both; None if it does not."""
    server, colon, rest = uri.removeprefix(_SERVER_URI).partition(":")
    return (server, rest) if uri.startswith(_SERVER_URI) and colon else None
