"""Fields of an entry that a person should know of before its server is used: they run a command, or send
messages, tokens or files to another party than the URL names. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from dragoman.config.policy import loader_variables
from dragoman.config.policy_subjects import reroutes

NOTED_FIELDS: Final = {
    "headersHelper": "this command is run whenever the server is connected",
    "proxy": "every message to the server goes through this proxy",
    "tls": "it decides which certificates are accepted, or sent to the server",
    "oauth.authServerMetadataUrl": "sign-in trusts the metadata at this URL",
    "oauth.endpointOrigins": "sign-in may send codes and secrets to these origins",
    "oauth.resource": "the server is sent tokens for this resource",
    "oauth.allowPrivateNetwork": "sign-in may contact addresses of your network",
    "oauth.workloadToken": "sign-in sends this token, or the content of this file",
    "oauth.xaa": "tokens for the server are obtained with your company's sign-on",
    "oauth.sendResource": "the server is sent tokens that are not bound to it, and may use them elsewhere",
}
_NOTED_IF_FALSE: Final = frozenset({"oauth.sendResource"})


def noted_fields(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The fields of the entry that a person is told about, and the effect of each. The entry has Dragoman's
    own names of fields."""
    for field, text in NOTED_FIELDS.items():
        owner, _, name = field.rpartition(".")
        fields: Any = entry.get(owner) if owner else entry
        value = cast("Mapping[str, Any]", fields).get(name) if isinstance(fields, Mapping) else None
        is_noted = value is False if field in _NOTED_IF_FALSE else not is_empty_value(value)
        if is_noted:
            yield field, text
    for name in loader_variables(_names(entry, "env")):
        yield f"env.{name}", "this variable changes how programs run"
    for name in filter(reroutes, _names(entry, "headers")):
        yield f"headers.{name}", "by this header a message may reach another host"


def is_empty_value(value: Any) -> bool:
    """Whether a field with this value has no content."""
    return value is None or value is False or value == "" or value == [] or value == {}


def _names(entry: Mapping[str, Any], field: str) -> list[str]:
    """The names in a field that contains texts by name; it may contain anything."""
    value: Any = entry.get(field)
    return list(map(str, cast("Mapping[str, Any]", value))) if isinstance(value, Mapping) else []
