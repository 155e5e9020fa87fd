"""How each host with a JSON file writes an entry: one table row per host.

`import_entries` and `export_entries` convert entries, `formats` handles files and blocks, and `codex` handles
Codex, whose entries have another structure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from dragoman.config.interchange import variables
from dragoman.config.interchange.variables import VariableSyntax


class SignIn(Struct, frozen=True, kw_only=True):
    """How a host writes what we call `oauth`."""

    field: str
    names: Mapping[str, str]
    scopes_are_text: bool = False


class Dialect(Struct, frozen=True, kw_only=True):
    """How one host writes an entry."""

    syntax: VariableSyntax
    addresses: Mapping[str, str | None]
    """Fields that hold an address → the transport they mean by themselves; "" looks at the address, None
    is in doubt. What stands first wins."""
    spelled: Mapping[str, str]
    """Remote transports the host knows → the field their address is written in."""
    typed: Literal["always", "needed", "never"] = "needed"
    """When `type` is written."""
    fields: Mapping[str, str] = {}
    """Our fields that the host knows too → its names."""
    sign_in: SignIn | None = None
    reasons: Mapping[str, str] = {}
    """The host's own fields → why they do not carry over."""
    shortest_timeout: int = 0
    """Time limits below this, in milliseconds, are ignored there."""
    unremarkable: frozenset[str] = frozenset()
    """The host's own fields that say nothing about the server."""
    keeps_unknown: bool = False
    """Its form is ours: what neither knows is kept."""

    @property
    def host(self) -> str:
        return self.syntax.host


_ENV_FILE = "files of variables are not read: set what it holds, or write it under env"

CLAUDE_CODE: Final = Dialect(
    syntax=variables.like_ours("Claude Code"),
    addresses={"url": "http"},
    spelled={"http": "url", "sse": "url", "ws": "url"},
    # An address without a type is taken for a stdio server there, and skipped.
    typed="always",
    fields={"headersHelper": "headersHelper", "timeout": "timeout"},
    shortest_timeout=1000,
    sign_in=SignIn(
        field="oauth",
        names={name: name for name in ("clientId", "callbackPort", "authServerMetadataUrl", "scopes", "xaa")},
        scopes_are_text=True,
    ),
    keeps_unknown=True,
)

CLAUDE_DESKTOP: Final = Dialect(
    syntax=variables.none_at_all("Claude Desktop"), spelled={}, typed="never", addresses={"url": ""}
)

CURSOR: Final = Dialect(
    syntax=variables.like_an_editor("Cursor"),
    addresses={"url": ""},
    spelled={"http": "url", "sse": "url"},
    sign_in=SignIn(
        field="auth", names={"clientId": "CLIENT_ID", "clientSecret": "CLIENT_SECRET", "scopes": "scopes"}
    ),
    reasons={"envFile": _ENV_FILE},
)

VSCODE: Final = Dialect(
    syntax=variables.like_an_editor("VS Code"),
    addresses={"url": "http"},
    spelled={"http": "url", "sse": "url"},
    typed="always",
    fields={"cwd": "cwd"},
    sign_in=SignIn(field="oauth", names={"clientId": "clientId"}),
    reasons={
        "envFile": _ENV_FILE,
        "sandbox": "sandboxes are not supported",
        "sandboxEnabled": "sandboxes are not supported: the server runs with your own permissions",
        "dev": "servers are not restarted when their files change",
    },
    unremarkable=frozenset({"gallery", "version"}),
)

GEMINI: Final = Dialect(
    syntax=variables.like_a_shell("Gemini CLI"),
    # Both are read by every version; `url` alone was SSE first and is tried as HTTP since.
    addresses={"httpUrl": "http", "url": None},
    spelled={"http": "httpUrl", "sse": "url"},
    fields={
        "cwd": "cwd",
        "timeout": "timeout",
        "enabledTools": "includeTools",
        "disabledTools": "excludeTools",
    },
    sign_in=SignIn(
        field="oauth", names={"clientId": "clientId", "clientSecret": "clientSecret", "scopes": "scopes"}
    ),
    reasons={"trust": "trust is not imported: Dragoman's rules decide about calls"},
    unremarkable=frozenset({"description"}),
)

WINDSURF: Final = Dialect(
    syntax=variables.like_an_editor_without_words("Windsurf"),
    addresses={"serverUrl": "", "url": ""},
    spelled={"http": "serverUrl", "sse": "serverUrl"},
    typed="never",
    fields={"disabledTools": "disabledTools"},
)
