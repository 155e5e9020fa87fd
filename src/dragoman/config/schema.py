"""The types of each configuration file: its keys, their types and their meaning.

The published JSON Schemas are generated from these types. Reading is tolerant and checks each key separately
(`files.py`); these types describe a valid file. The fields of one server are in `model.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from dragoman.config.model import ALIASES_OF_URL, ServerConfig
from dragoman.protocol import REVISIONS
from dragoman.transport_types import IN_FILES, SELF_CONTAINED, TRANSPORT_TYPES, TYPE_ALIASES, Identity


class PolicyEntry(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """One server, or kind of server. Exactly one of the three."""

    server_name: Annotated[str | None, Meta(description="A server's name; * for any run of characters.")] = (
        None
    )
    server_url: Annotated[
        str | None,
        Meta(description="scheme://host[:port][/path]; * in each part. Without a path: any path."),
    ] = None
    server_command: Annotated[
        Annotated[list[str], Meta(min_length=1)] | None,
        Meta(description="Command and arguments, word by word; * within a word."),
    ] = None


class PermissionRules(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which calls are made without asking, which are asked, which are refused."""

    allow: Annotated[tuple[str, ...], Meta(description="Calls made without asking.")] = ()
    ask: Annotated[tuple[str, ...], Meta(description="Calls a person is asked about.")] = ()
    deny: Annotated[tuple[str, ...], Meta(description="Calls that are refused.")] = ()
    default_mode: Annotated[str | None, Meta(description="Permission mode to start in.")] = None
    disable_bypass_permissions_mode: Annotated[
        str | bool | None, Meta(description="Managed settings only: forbids bypassPermissions.")
    ] = None


def restricting_mode(text: str) -> str | None:
    """The permission mode that restricts calls and is meant by a text, also in other letter case or with
    blanks or separators: "Plan", "dont-ask". None for other texts: modes that permit are compared exactly."""
    meant = re.sub(r"[\s_-]", "", text).casefold()
    return {"default": "default", "plan": "plan", "dontask": "dontAsk"}.get(meant)


class HookEntry(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is run: a command of the shell, or an address that the event is sent to."""

    type: Annotated[Literal["command", "http"], Meta(description="The type of the hook.")]
    command: Annotated[str | None, Meta(description="Run by the shell; gets the event as JSON.")] = None
    shell: Annotated[
        Literal["sh", "bash"] | None, Meta(description="Which shell runs the command; sh by default.")
    ] = None
    url: Annotated[str | None, Meta(description="Where the event is sent, as JSON.")] = None
    headers: Annotated[dict[str, str], Meta(description="Sent along; values may use ${VARIABLE}.")] = {}
    timeout: Annotated[float, Meta(gt=0, le=86400, description="Seconds it may take; 60 by default.")] = 60.0
    on_error: Annotated[
        Literal["block", "ignore"] | None,
        Meta(description="What its failure does; by default ignore, block in the administrator's file."),
    ] = None

    def __repr__(self) -> str:
        return "<HookEntry>"


class HookGroup(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Hooks with a common matcher."""

    hooks: Annotated[tuple[HookEntry, ...], Meta(description="The hooks to run.")]
    matcher: Annotated[
        str, Meta(description="Names with *, alternatives with |, or a regular expression; empty: any.")
    ] = ""


class ConnectorsConfig(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An organisation's list of servers, fetched over HTTP."""

    url: Annotated[str, Meta(description="Where the list is.")]
    bearer: Annotated[str | None, Meta(description="Sent as bearer token; best written ${VARIABLE}.")] = None
    bearer_origins: Annotated[
        tuple[str, ...],
        Meta(
            description="https origins that servers of type claudeai-proxy may send the organisation's token "
            "to; by default the list's own origin."
        ),
    ] = ()

    def __repr__(self) -> str:
        return "<ConnectorsConfig>"


class XaaIdpConfig(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The company's identity provider, at which people sign in once for all servers with `oauth.xaa`."""

    issuer: Annotated[str, Meta(description="Its issuer, an https URL.")]
    client_id: Annotated[str, Meta(description="The client id of Dragoman there.")]
    client_secret: Annotated[str | None, Meta(description="Its secret; best written ${VARIABLE}.")] = None
    scopes: Annotated[tuple[str, ...], Meta(description="Scopes of the sign-in.")] = (
        "openid",
        "offline_access",
    )
    callback_port: Annotated[
        Annotated[int, Meta(ge=1, le=65535)] | None, Meta(description="Port of the loopback callback.")
    ] = None
    id_token: Annotated[
        str | None,
        Meta(description="An ID token that another program obtains, or @ and the file that holds it."),
    ] = None
    enabled: Annotated[bool, Meta(description="Whether it is used; else DRAGOMAN_ENABLE_XAA decides.")] = (
        False
    )

    def __repr__(self) -> str:
        return "<XaaIdpConfig>"


Names = tuple[str, ...]
Servers = Annotated[dict[str, ServerConfig], Meta(description="Servers by name.")]
Policies = tuple[PolicyEntry, ...]


class ProjectFile(Struct, frozen=True, rename="camel", omit_defaults=True):
    """`.mcp.json`: servers that a project shares. Each needs approval before it is started."""

    mcp_servers: Servers = {}


class LocalFile(ProjectFile, frozen=True, rename="camel", omit_defaults=True):
    """`.dragoman/settings.local.json`: one person's settings for one project, kept out of git."""

    disabled_mcp_servers: Annotated[Names, Meta(description="Names of disabled servers.")] = ()
    disabled_mcpjson_servers: Annotated[
        Names, Meta(description="Servers of .mcp.json that were declined, by name.")
    ] = ()
    denied_mcp_servers: Annotated[
        tuple[PolicyEntry | str, ...],
        Meta(description="Servers that are never used, by name or policy. Precedes every other list."),
    ] = ()
    permissions: PermissionRules = PermissionRules()


class UserFile(LocalFile, frozen=True, rename="camel", omit_defaults=True):
    """`~/.dragoman/settings.json`: a person's own servers and choices."""

    enabled_mcpjson_servers: Annotated[
        Names,
        Meta(description="Servers of any .mcp.json approved by name; bound to the entry when first started."),
    ] = ()
    enable_all_project_mcp_servers: Annotated[
        bool, Meta(description="Approves every server of every .mcp.json: a security risk.")
    ] = False
    allowed_mcp_servers: Annotated[
        Policies, Meta(description="Policy: the only servers that may be used. An empty list means none.")
    ] = ()
    allowed_mcp_environment: Annotated[
        Names,
        Meta(
            description="Variables that entries may set beside an allowed serverCommand; * for any letters."
        ),
    ] = ()
    connectors: ConnectorsConfig | None = None
    xaa_idp: XaaIdpConfig | None = None
    hooks: Annotated[dict[str, tuple[HookGroup, ...]], Meta(description="Hooks by event.")] = {}
    env: Annotated[
        dict[str, str | int],
        Meta(description="Settings by their names, and variables for ${VAR}."),
    ] = {}


class ManagedFile(UserFile, frozen=True, rename="camel", omit_defaults=True):
    """`managed-mcp.json`: the administrator's file. With `mcpServers`, no other servers are used."""

    allow_managed_mcp_servers_only: Annotated[
        bool, Meta(description="Only this file's allowedMcpServers is used, not the person's own.")
    ] = False


FILES: Final[dict[str, type[ProjectFile]]] = {
    "project": ProjectFile,
    "local": LocalFile,
    "user": UserFile,
    "managed": ManagedFile,
}
"""The files by their names in `dragoman config schema`."""


def _of_type(names: Iterable[str]) -> dict[str, Any]:
    return {"properties": {"type": {"enum": list(names)}}, "required": ["type"]}


def _words_of_types(identity: Identity) -> Iterator[str]:
    """The names and aliases of the types whose entries must have this field."""
    rows = [TRANSPORT_TYPES[name] for name in SELF_CONTAINED]
    named = [row for row in rows if row.identity == identity]
    yield from (row.name for row in named)
    yield from (alias for row in named for alias in row.aliases)


_NEEDS: Final = [
    {"if": _of_type(_words_of_types("command")), "then": {"required": ["command"]}},
    {
        "if": _of_type(_words_of_types("url")),
        "then": {"anyOf": [{"required": [key]} for key in ("url", *ALIASES_OF_URL)]},
    },
]
_NEEDS_NEITHER: Final = _of_type(name for name in IN_FILES if name not in SELF_CONTAINED)


def keys_of(shape: type[ProjectFile]) -> dict[str, Any]:
    """The keys a file may have → their types."""
    return {field.encode_name: field.type for field in msgspec.structs.fields(shape)}


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a file, for editors."""
    _, parts = msgspec.json.schema_components([FILES[name]], ref_template="#/$defs/{name}")
    whole = parts.pop(FILES[name].__name__)
    entry = parts["ServerConfig"]
    for shape in ("ServerConfig", "OAuthConfig", "TlsConfig"):
        parts[shape]["properties"].pop("unknown")
    entry["properties"]["type"]["enum"] = [*IN_FILES, *TYPE_ALIASES]
    entry["properties"]["command"]["minLength"] = 1
    entry["properties"]["timeout"]["minimum"] = 1
    entry["properties"]["protocol"]["enum"] = ["auto", "legacy", *REVISIONS]
    entry["anyOf"] = [{"required": [key]} for key in ("command", "url", *ALIASES_OF_URL)] + [_NEEDS_NEITHER]
    entry["allOf"] = _NEEDS
    if "PolicyEntry" in parts:
        keys = parts["PolicyEntry"]["properties"]
        parts["PolicyEntry"]["oneOf"] = [{"required": [key]} for key in keys]
    whole["properties"]["$schema"] = {"type": "string"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **whole,
        "title": f"Dragoman: {name} configuration",
        "$defs": parts,
    }
