"""The file of a gateway: its callers, where their tokens come from, its views, and what replicas share.

```json
{
  "callers": {"ci": {"token": "…", "tools": ["files__read*"], "callsPerMinute": 60},
              "desk": {"token": "…", "views": ["support"]}},
  "oauth": {"issuer": "https://login.example.com", "audience": "https://tools.example.com/mcp",
            "scopes": {"files": {"servers": ["files"]}}},
  "views": {"support": {"servers": ["tickets"], "rename": {"tickets__search": "find_ticket"},
                        "arguments": {"find_ticket": {"project": "SUP"}}}},
  "publicUrl": "https://tools.example.com",
  "callerSignIn": ["tracker"],
  "store": {"redis": "redis://redis.internal:6379/0", "key": "…"}
}
```
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.wildcards import fits

SEARCH_NAMES: Final = frozenset({"tool_search", "call_tool"})
"""The tools of a view with `toolSearch`. No other tool has one of these names there."""


class Selection(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A part of what the gateway offers."""

    servers: tuple[str, ...] | None = None
    """Only these servers; None: all, unless `tools` is given."""
    tools: tuple[str, ...] | None = None
    """Only tools whose name fits one of these patterns (`*`). Without `servers`, no resources and prompts."""

    def offers_server(self, server: str) -> bool:
        """Whether resources and prompts of the server are in it."""
        return server in self.servers if self.servers is not None else self.tools is None

    def offers_some_tool(self, server: str, start: str) -> bool:
        """Whether it may have a tool of the server, whose tools are not known yet. `start`: how the names of
        its tools begin."""
        if self.servers is not None and server not in self.servers:
            return False
        if self.tools is None:
            return True
        patterns = [each.partition("*") for each in self.tools]
        return any(
            literal.startswith(start) or (star and start.startswith(literal)) for literal, star, _ in patterns
        )

    def offers_tool(self, server: str, name: str) -> bool:
        """`name`: as clients know it."""
        if self.servers is not None and server not in self.servers:
            return False
        return self.tools is None or any(fits(tuple(each.split("*")), name) for each in self.tools)


class Rights(Selection, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What a caller may use."""

    views: tuple[str, ...] | None = None
    """Only at the paths of these views; None: everywhere."""

    def apply_at(self, view: str) -> bool:
        return self.views is None or view in self.views


EVERYTHING: Final = Rights()


class CallerEntry(Rights, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A caller with a fixed token."""

    token: str = ""
    calls_per_minute: int | None = None


class OAuthEntry(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Callers with access tokens of an authorization server."""

    issuer: str
    audience: str
    """The URL of the gateway, as tokens name it."""
    scopes: Mapping[str, Rights] = {}
    """What a token with a scope may use. Without any entry, each valid token may use everything."""
    calls_per_minute: int | None = None


class View(Selection, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A part of what is offered, at a path of its own."""

    rename: Mapping[str, str] = {}
    """The name of a tool → the name that it has in this view."""
    arguments: Mapping[str, Mapping[str, Any]] = {}
    """By the name of a tool in this view: arguments that are fixed. Clients do not see them."""
    tool_search: bool = False
    """Whether clients find tools by searching, and are not given a list of them: see `tool_search.py`."""
    result_tokens: int | None = None
    """Larger results of calls are cut; 0: never; None: as outside of views."""


class StoreEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the replicas of a gateway share their state. All have the same entry."""

    redis: str
    """`redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, `rediss://` for TLS, or `unix://PATH`."""
    key: str
    """The key with which everything in the store is encrypted."""
    name: str = "gateway"
    """Another one for each gateway that uses the same Redis."""


class GatewaySettings(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    public_url: str = ""
    """How browsers reach the gateway, without a path of its own: `https://tools.example.com`."""
    caller_sign_in: tuple[str, ...] = ()
    """Servers to which each caller signs in with an account of its own."""
    callers: Mapping[str, CallerEntry] = {}
    oauth: OAuthEntry | None = None
    views: Mapping[str, View] = {}
    result_tokens: int = 0
    """Larger results of calls are cut; 0: never."""
    store: StoreEntry | None = None
    """Without one, the gateway runs alone."""


def searched(views: Mapping[str, View]) -> Mapping[str, View]:
    """All of them, and what is outside of them (with an empty name), with `toolSearch`."""
    return {name: replace(view, tool_search=True) for name, view in {"": View(), **views}.items()}


def limited(views: Mapping[str, View], tokens: int) -> Mapping[str, View]:
    """All of them, and what is outside of them, with the limit of results where they have none."""
    return {
        name: replace(view, result_tokens=tokens) if view.result_tokens is None else view
        for name, view in {"": View(), **views}.items()
    }
