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

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.errors import ConfigError
from dragoman.private_files import is_open_to
from dragoman.urls import is_loopback, parse_url
from dragoman.wildcards import fits

TOKEN_CHARACTERS: Final = 16
"""A shorter token can be guessed."""
KEY_CHARACTERS: Final = 32
"""Of the key of a store."""
LEAST_RESULT_TOKENS: Final = 1000
"""A smaller limit of results would leave little but the words about it."""
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

    def hold_at(self, view: str) -> bool:
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
    """With which everything there is encrypted."""
    name: str = "gateway"
    """Another one for each gateway that uses the same Redis."""


class GatewaySettings(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    public_url: str = ""
    """How browsers reach the gateway, without a path of its own: `https://tools.example.com`."""
    caller_sign_in: tuple[str, ...] = ()
    """Servers to which each caller signs in by itself."""
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


def read_settings(path: Path) -> GatewaySettings:
    """The settings in a file; `ConfigError` if they cannot be used."""
    try:
        if is_open_to(0o077, os.stat(path)):
            raise ConfigError(f"{path} contains tokens, and others can read it", hint=f"chmod 600 {path}")
        found = msgspec.json.decode(path.read_bytes(), type=GatewaySettings)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be used: {error}") from None
    for problem in _problems(found):
        raise ConfigError(f"{path}: {problem}")
    return found


def _problems(settings: GatewaySettings) -> list[str]:
    problems = [
        f"the token of caller {name!r} has fewer than {TOKEN_CHARACTERS} characters"
        for name, caller in settings.callers.items()
        if len(caller.token) < TOKEN_CHARACTERS
    ]
    tokens = [caller.token for caller in settings.callers.values()]
    if len(set(tokens)) < len(tokens):
        problems.append("two callers have the same token")
    if not settings.callers and settings.oauth is None:
        problems.append("it names neither callers nor oauth")
    if settings.oauth is not None:
        try:
            parse_url(settings.oauth.issuer)
            parse_url(settings.oauth.audience)
        except ConfigError as error:
            problems.append(f"oauth: {error}")
        problems += [
            f"the caller {name!r} has the name that a token of the issuer gives"
            for name in settings.callers
            if name.endswith(f"@{settings.oauth.issuer}")
        ]
    problems += _problems_of_url(settings.public_url) if settings.public_url else []
    if settings.store is not None and len(settings.store.key) < KEY_CHARACTERS:
        problems.append(f"the key of the store has fewer than {KEY_CHARACTERS} characters")
    scopes: Mapping[str, Rights] = {} if settings.oauth is None else settings.oauth.scopes
    rights = [
        *((f"caller {name!r}", each) for name, each in settings.callers.items()),
        *((f"scope {name!r}", each) for name, each in scopes.items()),
    ]
    problems += [
        f"{whose} names the view {view!r}, which does not exist"
        for whose, each in rights
        for view in each.views or ()
        if view not in settings.views
    ]
    problems += [
        f"the view {name!r} gives a tool the name {new!r}, which the gateway uses itself"
        for name, view in settings.views.items()
        for new in view.rename.values()
        if new in SEARCH_NAMES
    ]
    limits = [settings.result_tokens, *(view.result_tokens or 0 for view in settings.views.values())]
    if any(tokens and tokens < LEAST_RESULT_TOKENS for tokens in limits):
        problems.append(f"resultTokens is less than {LEAST_RESULT_TOKENS}, and not 0")
    problems += [
        f"the view {name!r} needs a name of letters, digits, - and _"
        for name in settings.views
        if not _is_path(name)
    ]
    return problems


def _problems_of_url(url: str) -> list[str]:
    try:
        parsed = parse_url(url)
    except ConfigError as error:
        return [f"publicUrl: {error}"]
    if "?" in url or "#" in url or "@" in url:
        return ["publicUrl has no query, fragment or user"]
    if parsed.scheme != "https" and not is_loopback(parsed):
        return ["publicUrl must begin with https://: tokens depend on what browsers send there"]
    return []


def _is_path(name: str) -> bool:
    return bool(name) and all(each.isascii() and (each.isalnum() or each in "-_") for each in name)
