"""One server entry, as written in configuration and as parsed.

Defines the fields of an entry, their types, the names that other hosts use for them, and the errors for
entries that cannot be used. An unknown field is kept and causes a warning, never an error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Annotated, Any, Final, Literal, cast

import msgspec
from msgspec import Meta, Struct

from dragoman.cleaning import fold, one_line
from dragoman.config.masking import masked_name
from dragoman.errors import ConfigError
from dragoman.names import letters_of
from dragoman.protocol import HTTP_TOKEN, REVISIONS, LogLevel
from dragoman.transport_types import (
    IN_FILES,
    TRANSPORT_TYPES,
    TYPE_ALIASES,
    TransportType,
    transport_type,
)
from dragoman.urls import parse_url
from dragoman.wildcards import fits


class OAuthConfig(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """How to sign in at a remote server."""

    client_id: Annotated[str | None, Meta(description="Client id registered beforehand.")] = None
    client_secret: Annotated[str | None, Meta(description="Its secret; better as ${VARIABLE}.")] = None
    callback_port: Annotated[
        Annotated[int, Meta(ge=1, le=65535)] | None, Meta(description="Port of the loopback callback.")
    ] = None
    auth_server_metadata_url: Annotated[
        str | None,
        Meta(description="URL of the authorization server's metadata, if it is not at the standard place."),
    ] = None
    scopes: Annotated[str | tuple[str, ...] | None, Meta(description="OAuth scopes to request.")] = None
    issuer: Annotated[
        str | None, Meta(description="The only authorization server to use; a client secret is its alone.")
    ] = None
    resource: Annotated[
        str | None, Meta(description="The resource to ask tokens for, if it is wider than the server's URL.")
    ] = None
    send_resource: Annotated[
        bool, Meta(description="False for authorization servers that refuse the parameter `resource`.")
    ] = True
    assume_pkce: Annotated[
        bool, Meta(description="The authorization server supports PKCE although it does not state it.")
    ] = False
    endpoint_origins: Annotated[
        tuple[str, ...], Meta(description="Origins that endpoints may have besides the issuer's.")
    ] = ()
    allow_private_network: Annotated[
        bool, Meta(description="The authorization server of a public server may be in a private network.")
    ] = False
    client_metadata_url: Annotated[
        str | None, Meta(description="URL of this client's metadata document, used as its client id.")
    ] = None
    token_auth_method: Annotated[
        Literal["none", "client_secret_basic", "client_secret_post"] | None,
        Meta(description="How the client authenticates, in place of what the metadata states."),
    ] = None
    grant: Annotated[
        Literal["authorization_code", "client_credentials", "workload_identity"],
        Meta(description="How tokens are obtained: by a person's sign-in, or without a person."),
    ] = "authorization_code"
    private_key: Annotated[
        str | None,
        Meta(description="Private key (PEM or JWK) of client_credentials; better as ${VARIABLE}."),
    ] = None
    signing_algorithm: Annotated[
        str | None, Meta(description="Algorithm for the private key, such as ES256.")
    ] = None
    workload_token: Annotated[
        str | None, Meta(description="JWT of workload_identity, or @ and the file that holds it.")
    ] = None
    identity: Annotated[
        str | None, Meta(description="Which of several accounts at the server is used, such as `work`.")
    ] = None
    dpop: Annotated[bool, Meta(description="Bind tokens to a key (DPoP).")] = False
    xaa: Annotated[bool, Meta(description="Sign in through the company's identity provider.")] = False
    unknown: dict[str, Any] = {}
    """Fields this version does not know."""

    def __repr__(self) -> str:
        return "<OAuthConfig>"


class TlsConfig(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Certificates for reaching a remote server."""

    ca: Annotated[
        str | None, Meta(description="File with CA certificates to trust in addition to the system's.")
    ] = None
    cert: Annotated[str | None, Meta(description="Client certificate file.")] = None
    key: Annotated[
        str | None, Meta(description="Private key file, if the key is not in the certificate file.")
    ] = None
    unknown: dict[str, Any] = {}
    """Fields this version does not know."""


class ServerConfig(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What is needed to reach one server."""

    type: Annotated[
        str, Meta(description="Transport type. Implied by `command` (stdio) or `url` (http).")
    ] = "stdio"
    command: Annotated[str | None, Meta(description="The program to start.")] = None
    args: Annotated[tuple[str, ...], Meta(description="Its arguments.")] = ()
    env: Annotated[dict[str, str], Meta(description="Variables for it.")] = {}
    cwd: Annotated[str | None, Meta(description="The folder to start it in.")] = None
    url: Annotated[str | None, Meta(description="The URL of a remote server.")] = None
    headers: Annotated[dict[str, str], Meta(description="Headers of every request to it.")] = {}
    headers_helper: Annotated[
        str | None, Meta(description="A command that prints further headers as JSON.")
    ] = None
    oauth: OAuthConfig | None = None
    tls: TlsConfig | None = None
    proxy: Annotated[
        str | None, Meta(description="HTTP proxy to reach it through; HTTPS_PROXY and NO_PROXY otherwise.")
    ] = None
    token_header: Annotated[
        str | None, Meta(description="Header for the token of an IDE's lockfile (sse-ide, ws-ide).")
    ] = None
    timeout: Annotated[
        int | None, Meta(description="Milliseconds a call may take; overrides MCP_TOOL_TIMEOUT.")
    ] = None
    protocol: Annotated[str, Meta(description="auto, legacy, or the protocol revision to speak.")] = "auto"
    enabled_tools: Annotated[
        tuple[str, ...] | None, Meta(description="Only these of its tools are offered.")
    ] = None
    disabled_tools: Annotated[tuple[str, ...], Meta(description="These of its tools are not offered.")] = ()
    log_level: Annotated[
        LogLevel | None, Meta(description="The least severe log messages that it is asked for.")
    ] = None
    trusted: Annotated[bool, Meta(description="Its tool annotations (readOnlyHint …) are trusted.")] = False
    sampling: Annotated[
        Literal["off", "ask", "allow"],
        Meta(description="Whether it may ask the program's model: never, after a review, or always."),
    ] = "off"
    roots: Annotated[
        bool | None,
        Meta(
            description="Whether it is given the working directory as a root. Default: a local server, if "
            "folders are named (`--add-dir`)."
        ),
    ] = None
    lazy: Annotated[bool, Meta(description="Started at first use and stopped when idle (local servers).")] = (
        False
    )
    disabled: Annotated[bool, Meta(description="Not started.")] = False
    enabled: Annotated[bool, Meta(description="False: not started.")] = True
    unknown: dict[str, Any] = {}
    """Fields this version does not know."""

    def __repr__(self) -> str:
        """Identifies the server, and omits everything that may be secret."""
        return f"<ServerConfig {self.type} {self.command or ''}>"

    def fingerprint(self) -> str:
        """A digest that changes with every change of the entry. Reveals nothing of its values."""
        return fingerprint(msgspec.structs.asdict(self))

    def offers(self, tool: str) -> bool:
        """Whether a tool of this server, by its wire name, is offered at all."""
        if any(_may_mean_tool(written, tool) for written in self.disabled_tools):
            return False
        return self.enabled_tools is None or tool in self.enabled_tools

    @property
    def transport(self) -> TransportType:
        return transport_type(self.type)

    @property
    def signature(self) -> tuple[str, ...] | None:
        """A key that is equal for two entries of the same server: the URL, or the command and its arguments,
        and the account.

        It contains the values that distinguish accounts only as a fingerprint.
        """
        if self.transport.starts_command and self.command:
            return ("command", self.command, *self.args, fingerprint(self.env))
        if self.url:
            headers = {name.lower(): value for name, value in self.headers.items()}
            account = fingerprint([headers, self.headers_helper, self.oauth])
            return ("url", str(parse_url(self.url)), account)
        return None


_BETWEEN_NAMES: Final = re.compile("[,;|]")


def _may_mean_tool(written: str, tool: str) -> bool:
    """Whether a prohibited name, or one of several in one text, may mean a tool: loosely, also as
    `mcp__server__tool`, or with `*`."""
    name, text = fold(tool).strip(), fold(written).strip()
    parts = map(str.strip, _BETWEEN_NAMES.split(text))
    return any(_may_be_name(each, name) for each in (text, *parts) if each)


def _may_be_name(meant: str, name: str) -> bool:
    if "*" in meant and fits(tuple(meant.split("*")), name):
        return True
    return meant == name or (meant.startswith("mcp__") and meant.endswith(f"__{name}"))


def fingerprint(value: Any) -> str:
    """A digest of any value made of plain JSON parts; the order of keys is ignored."""
    return hashlib.sha256(repr(_ordered(value)).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _ordered(value: Any) -> Any:
    if isinstance(value, Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return {"keys": sorted((str(key), repr(_ordered(item))) for key, item in pairs)}
    if isinstance(value, list | tuple):
        return [_ordered(item) for item in cast("list[Any]", value)]
    return repr(value)


FIELDS: Final = frozenset(field.encode_name for field in msgspec.structs.fields(ServerConfig)) - {"unknown"}
"""The fields an entry may have."""

_PARTS: Final = {
    field: frozenset(each.encode_name for each in msgspec.structs.fields(shape)) - {"unknown"}
    for field, shape in (("oauth", OAuthConfig), ("tls", TlsConfig))
}
"""The fields that are objects with known fields of their own, and these."""

PROBLEM_LIMIT: Final = 20
"""Problems of a file, and warnings about an entry, that are described; more are counted."""

_ALIASES: Final = {
    "serverUrl": ("url", "http"),  # Windsurf
    "httpUrl": ("url", "http"),  # Gemini CLI
    "includeTools": ("enabledTools", None),
    "excludeTools": ("disabledTools", None),
}
"""A field name of other hosts → the name here, and the type that it implies."""

_RESTRICTING: Final = frozenset(
    {"enabledTools", "disabledTools", "includeTools", "excludeTools", "enabled", "disabled", "roots", "oauth"}
)
"""Fields that restrict what is offered of a server, or what it gets."""
_RESTRICTING_OAUTH: Final = frozenset({"issuer", "scopes", "dpop"})
"""The same inside `oauth`: where tokens may come from, and what and by whom they may be used for."""

ALIASES_OF_URL: Final = tuple(alias for alias, (field, _) in _ALIASES.items() if field == "url")

_HEADER_NAME: Final = re.compile(HTTP_TOKEN)
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_REFUSED_SURROGATE: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""The same without U+DC80 to U+DCFF, which represent bytes of variables and file names that are not UTF-8."""


def parse_entry(name: str, entry: Mapping[str, Any]) -> ServerConfig:
    """The parsed entry; raises `ConfigError` with server and field."""
    try:
        check_restrictions(entry)
    except ConfigError as error:
        raise ConfigError(f"server {name!r}: {error}", hint="Correct the entry.") from None
    entry = with_own_field_names(entry)
    known = _separated(entry, FIELDS)
    if "type" not in known:
        known["type"] = _implied_type(name, entry)
    for field, fields in _PARTS.items():
        if isinstance(part := known.get(field), Mapping):
            known[field] = _separated(cast("Mapping[str, Any]", part), fields)
    try:
        config = msgspec.convert(known, ServerConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"server {name!r}: {_with_key(str(error), known)}",
            hint="Correct the entry; the others are not affected.",
        ) from None
    _check(name, config)
    return config


def check_restrictions(entry: Mapping[str, Any]) -> None:
    """Raises `ConfigError` for a field that restricts a server and would have no effect: one with other case,
    blanks or punctuation, in the singular or plural, without a value, or beside another one with the same
    meaning."""
    _check_spelling(entry, _RESTRICTING)
    for field in ("enabledTools", "includeTools"):
        if entry.get(field, ()) is None:
            raise ConfigError(f"{field!r} has no value: write [] for none, or leave the field out")
    if isinstance(oauth := entry.get("oauth"), Mapping):
        _check_spelling(cast("Mapping[str, Any]", oauth), _RESTRICTING_OAUTH)
    for alias, (field, _) in _ALIASES.items():
        if alias in _RESTRICTING and alias in entry and field in entry:
            raise ConfigError(f"{alias!r} and {field!r} are the same field; write one of them only")


def _check_spelling(part: Mapping[str, Any], fields: frozenset[str]) -> None:
    by_letters = {letters_of(field).removesuffix("s"): field for field in fields}
    for key in map(str, part):
        wanted = by_letters.get(letters_of(key).removesuffix("s"), key)
        if wanted != key:
            raise ConfigError(f"the field {one_line(key, 60)!r} must be written {wanted!r}")


def checked_config(name: str, config: ServerConfig) -> ServerConfig:
    """An entry that a program has made, with the types that its fields declare; raises `ConfigError`. One
    string in place of a list of prohibited tools would be read letter by letter."""
    try:
        checked = msgspec.convert(_fields_of(config), ServerConfig)
    except msgspec.ValidationError as error:
        where = _with_key(str(error), _fields_of(config))
        raise ConfigError(f"server {name!r}: {where}", hint="Correct the ServerConfig.") from None
    return config if checked == config else checked


def _with_key(message: str, fields: Mapping[str, Any]) -> str:
    """The message of msgspec, with the key that it writes as `[...]`: the first value of `env` or `headers`
    that is not a text."""
    for field in ("env", "headers"):
        place = f"`$.{field}[...]`"
        if message.endswith(place) and isinstance(values := fields.get(field), Mapping):
            pairs = cast("Mapping[object, object]", values).items()
            key = next((key for key, value in pairs if not isinstance(value, str)), None)
            if isinstance(key, str):
                return f"{message.removesuffix(place)}`$.{field}.{one_line(masked_name(key), 80)}`"
    return message


def _fields_of(part: Struct) -> dict[str, Any]:
    pairs = ((field.encode_name, getattr(part, field.name)) for field in msgspec.structs.fields(part))
    return {name: _fields_of(value) if isinstance(value, Struct) else value for name, value in pairs}


def _separated(given: Mapping[str, Any], fields: frozenset[str]) -> dict[str, Any]:
    """The known fields, and `unknown` with the others."""
    known = {key: value for key, value in given.items() if key in fields}
    return {**known, "unknown": {key: value for key, value in given.items() if key not in fields}}


def entry_warnings(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Descriptions of fields without effect: unknown fields, and fields that the entry's type does not
    use."""
    entry = with_own_field_names(entry)
    found = [*_unused_by_type(entry), *islice(_unknown_fields(entry), PROBLEM_LIMIT)]
    more = sum(1 for _ in _unknown_names(entry)) - PROBLEM_LIMIT
    return (*found, *([f"and {more} more fields that this version does not know"] if more > 0 else []))


def _unknown_fields(entry: Mapping[str, Any]) -> Iterator[str]:
    for owner, name in _unknown_names(entry):
        near = _near_field(name, _PARTS[owner] if owner else FIELDS)
        advice = f"; did you mean {near}?" if near else ""
        shown = masked_name(name)
        where = f"{owner}.{shown}" if owner else shown
        yield f"the entry has a field {one_line(where, 80)!r} that this version does not know{advice}"


def _near_field(name: str, fields: Iterable[str]) -> str | None:
    """The one of the fields that an unknown name probably means."""
    import difflib  # only for an unknown field

    known = {each.casefold(): each for each in fields}
    near = difflib.get_close_matches(name.casefold()[:100], sorted(known), 1)
    return known[near[0]] if near else None


def _unknown_names(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The object an unknown field is in ("" for the entry itself), and the field."""
    for key, value in entry.items():
        if key not in FIELDS:
            yield "", key
        elif key in _PARTS and isinstance(value, Mapping):
            yield from (
                (key, inner) for inner in cast("Mapping[str, Any]", value) if inner not in _PARTS[key]
            )


def _unused_by_type(entry: Mapping[str, Any]) -> Iterator[str]:
    kind = type_in(entry)
    if kind not in IN_FILES:
        return
    unused = "url" if TRANSPORT_TYPES[kind].starts_command else "command"
    if entry.get(unused) is not None:
        yield f"{unused} has no effect: the server's type is {kind}"


def type_in(entry: Mapping[str, Any]) -> str | None:
    """The type in effect of an entry as written; None if it has none."""
    entry = with_own_field_names(entry)
    kind: Any = entry.get("type")
    if kind is None:
        kind = "stdio" if "command" in entry else "http" if "url" in entry else None
    return kind if isinstance(kind, str) else None


def parse_servers(document: Any, source: str) -> dict[str, Any]:
    """The `mcpServers` block of a configuration document; each entry is checked later, separately."""
    if not isinstance(document, dict):
        raise ConfigError(
            f"{source}: expected a JSON object", hint='Write {"mcpServers": {"name": {"command": …}}}.'
        )
    servers: Any = cast("dict[str, Any]", document).get("mcpServers")
    if servers is None and "servers" in document:
        raise ConfigError(f'{source}: found "servers"', hint='The block is called "mcpServers".')
    if not isinstance(servers, dict):
        wrong = "must be an object" if "mcpServers" in document else "is missing"
        raise ConfigError(
            f'{source}: "mcpServers" {wrong}', hint='Write {"mcpServers": {"name": {"command": …}}}.'
        )
    return cast("dict[str, Any]", servers)


def with_own_field_names(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with the field names and types of other hosts replaced by Dragoman's."""
    ours: dict[str, Any] = {}
    for key, value in entry.items():
        field, implied = _ALIASES.get(key, (key, None))
        if field == key or field not in entry:
            ours[field] = value
        if implied is not None and "type" not in entry:
            ours["type"] = implied
    kind = ours.get("type")
    if isinstance(kind, str):
        ours["type"] = TYPE_ALIASES.get(kind, kind)
    return ours


def _implied_type(name: str, entry: Mapping[str, Any]) -> str:
    if "command" in entry:
        return "stdio"
    if "url" in entry:
        return "http"
    raise ConfigError(
        f"server {name!r} has neither a command nor a url",
        hint=_advice_on_block(entry) or _misspelled_identity(entry) or "Give one of them.",
    )


def _advice_on_block(entry: Mapping[str, Any]) -> str | None:
    """The advice about a whole block of servers that was given as the entry of one."""
    if len(entry) == 1 and isinstance(inner := next(iter(entry.values())), Mapping):
        key = next(iter(entry))
        if key in ("mcpServers", "servers", "mcp_servers"):
            return f"It is a block of servers: give only the object of one server inside {key}."
        if "command" in inner or "url" in inner:
            return f"The entry is inside {one_line(masked_name(str(key)), 80)!r}: give only the inner object."
    return None


def _misspelled_identity(entry: Mapping[str, Any]) -> str | None:
    """The advice about a field that is nearly called `command` or `url`."""
    unknown = (field for owner, field in islice(_unknown_names(entry), PROBLEM_LIMIT) if not owner)
    for field in unknown:
        if (near := _near_field(field, FIELDS)) in ("command", "url"):
            return f"It has a field {one_line(masked_name(field), 80)!r}: did you mean {near}?"
    return None


def _check(name: str, config: ServerConfig) -> None:
    if not name.strip():
        raise ConfigError("a server needs a name", hint="Names are the keys of mcpServers.")
    if config.type not in IN_FILES:
        raise ConfigError(
            f"server {name!r}: unknown type {masked_name(config.type)!r}",
            hint=f"Types: {', '.join(IN_FILES)}.",
        )
    transport = config.transport
    if transport.is_identity_required and not (config.command if transport.starts_command else config.url):
        raise ConfigError(
            f"server {name!r}: a server of type {config.type} needs a {transport.identity}",
            hint=f"Add `{transport.identity}`.",
        )
    if config.protocol not in ("auto", "legacy", *REVISIONS):
        raise ConfigError(
            f"server {name!r}: unknown protocol {masked_name(config.protocol)!r}",
            hint=f"Use auto, legacy, or one of {', '.join(REVISIONS)}.",
        )
    if config.timeout is not None and config.timeout <= 0:
        raise ConfigError(f"server {name!r}: timeout must be positive (milliseconds)")
    if config.url is not None:
        _check_url(name, "url", config.url, f"of type {config.type}", transport.schemes)
    if config.oauth is not None and config.oauth.auth_server_metadata_url is not None:
        field = "oauth.authServerMetadataUrl"
        _check_url(name, field, config.oauth.auth_server_metadata_url, "of metadata", ("https", "http"))
    _check_texts(name, config)


def _check_url(name: str, field: str, url: str, kind: str, schemes: tuple[str, ...]) -> None:
    try:
        scheme = parse_url(url).scheme
    except ConfigError as error:
        raise ConfigError(f"server {name!r}: {field}: {error}", hint=error.hint) from None
    if schemes and scheme not in schemes:
        wanted = " or ".join(f"{each}://" for each in schemes)
        raise ConfigError(f"server {name!r}: a url {kind} begins with {wanted}")


def _check_texts(name: str, config: ServerConfig) -> None:
    if _LONE_SURROGATE.search(name):
        raise ConfigError(f"server {name!r}: a lone surrogate cannot be a part of its name")
    for value in (config.command or "", *config.args, *config.env, *config.env.values(), config.cwd or ""):
        if "\0" in value:
            raise ConfigError(f"server {name!r}: a NUL character cannot be passed to a program")
        if _REFUSED_SURROGATE.search(value):
            raise ConfigError(f"server {name!r}: a lone surrogate cannot be passed to a program")
    if any("=" in variable for variable in config.env):
        raise ConfigError(f"server {name!r}: the name of a variable in env contains an =")
    for header, value in config.headers.items():
        if not _HEADER_NAME.fullmatch(header):
            raise ConfigError(f"server {name!r}: a header's name is one word of letters, digits and hyphens")
        if any(char in "\r\n\0" for char in value):
            raise ConfigError(f"server {name!r}: a header must be one line")
