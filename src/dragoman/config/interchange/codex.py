"""Converts entries of Codex (`[mcp_servers.NAME]` in TOML) to Dragoman's form and back.

Codex expands nothing inside strings. It has a field for each thing that may come from the environment:
variables that a program gets under their own names (`env_vars`), a bearer token, and whole headers. What
Codex cannot express is left out and noted; a server that needs it raises `CannotTranslate`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from dragoman.config.interchange import variables
from dragoman.config.interchange.json_entries import NOTHING_LIKE_IT
from dragoman.config.interchange.shared import (
    CannotTranslate,
    Entry,
    Noting,
    address_of,
    as_entry,
    is_default,
    kind_of,
    map_of,
    needed_text,
    scopes_of,
    text_of,
    texts_of,
    time_limit,
)
from dragoman.config.noted_fields import is_empty_value

DIALECT: Final = variables.no_variables("Codex")
NAMES: Final = re.compile(r"[A-Za-z0-9_-]+")
"""Codex refuses servers with other names."""

_REASONS: Final = {
    "startup_timeout_sec": "the time to connect is one setting for all servers here (MCP_TIMEOUT)",
    "startup_timeout_ms": "the time to connect is one setting for all servers here (MCP_TIMEOUT)",
    "bearer_token": "a token must not be stored in the file: use a variable",
    "default_tools_approval_mode": "approvals are not imported: Dragoman's rules decide about calls",
    "tools": "approvals are not imported: Dragoman's rules decide about calls",
}
_BEARER: Final = re.compile(r"Bearer (\$\{[^}]*\})")
_TOOL_LISTS: Final = {"enabledTools": "enabled_tools", "disabledTools": "disabled_tools"}
_TAKEN_BY_ALL: Final = {"name", "tool_timeout_sec", "scopes", "oauth", *_TOOL_LISTS.values()}


# ---- import


def import_entry(raw: Any, note: Noting) -> dict[str, Any]:
    """Codex's table in Dragoman's form, or `CannotTranslate`."""
    table = as_entry(raw)
    if (table.get("command") is None) == (table.get("url") is None):
        raise CannotTranslate(None, "there has to be either a command or a url")
    if table.get("command") is not None:
        ours, taken = _import_program(table, note), {"command", "args", "env", "env_vars", "cwd"}
    else:
        ours, taken = _import_address(table, note), {"url", "http_headers", "env_http_headers"}
        taken.add("bearer_token_env_var")
        _import_sign_in(table, ours, note)
    _import_shared(table, ours, note)
    for field, value in table.items():
        if field not in taken | _TAKEN_BY_ALL and not is_empty_value(value):
            note(field, _REASONS.get(field, NOTHING_LIKE_IT))
    return ours


def _import_program(table: Entry, note: Noting) -> dict[str, Any]:
    ours: dict[str, Any] = {"command": _read(needed_text(table, "command"), note, "command")}
    if table.get("args") is not None:
        args = enumerate(texts_of(table["args"], "args"))
        ours["args"] = [_read(item, note, f"args[{number}]") for number, item in args]
    env = _import_env_vars(table.get("env_vars"), note)
    for name, text in map_of(table.get("env") or {}, "env").items():
        env[name] = _read(text, note, f"env.{name}")
    if env:
        ours["env"] = env
    if table.get("cwd") is not None:
        ours["cwd"] = _read(text_of(table["cwd"], "cwd"), note, "cwd")
    return ours


def _import_env_vars(value: Any, note: Noting) -> dict[str, str]:
    """`env_vars`: names, or tables with a name and where it comes from."""
    if value is None:
        return {}
    if not isinstance(value, list):
        raise CannotTranslate("env_vars", "env_vars is not a list")
    env: dict[str, str] = {}
    for item in cast("list[Any]", value):
        table = as_entry(item) if isinstance(item, Mapping) else {"name": item}
        name = _variable(needed_text(table, "name"), note, "env_vars")
        if table.get("source") == "remote":
            note("env_vars", "a variable of the remote machine cannot be passed on")
        elif name is not None:
            env[name] = (
                "${" + name + ":-}"
            )  # Codex passes on the variable if it is set, and does not require it
    return env


def _import_address(table: Entry, note: Noting) -> dict[str, Any]:
    ours: dict[str, Any] = {"type": "http", "url": _read(address_of(table, "url"), note, "url")}
    headers = {
        name: _read(text, note, f"http_headers.{name}")
        for name, text in map_of(table.get("http_headers") or {}, "http_headers").items()
    }
    for header, named in map_of(table.get("env_http_headers") or {}, "env_http_headers").items():
        name = _variable(named, note, f"env_http_headers.{header}")
        if name is not None:
            headers[header] = "${" + name + ":-}"
    _import_bearer(table, headers, note)
    if headers:
        ours["headers"] = headers
    return ours


def _import_bearer(table: Entry, headers: dict[str, str], note: Noting) -> None:
    field = "bearer_token_env_var"
    if table.get(field) is None:
        return
    name = _variable(needed_text(table, field), note, field)
    if name is None:
        return
    for header in [header for header in headers if header.lower() == "authorization"]:
        note(field, "there are two Authorization headers; the bearer token is kept")
        del headers[header]
    headers["Authorization"] = "Bearer ${" + name + "}"


def _variable(name: str, note: Noting, field: str) -> str | None:
    if variables.NAME.fullmatch(name):
        return name
    note(field, "a variable with such a name cannot be used here")
    return None


def _import_sign_in(table: Entry, ours: dict[str, Any], note: Noting) -> None:
    oauth: dict[str, Any] = {}
    theirs = as_entry(table.get("oauth") or {})
    if theirs.get("client_id") is not None:
        oauth["clientId"] = _read(
            text_of(theirs.pop("client_id"), "oauth.client_id"), note, "oauth.client_id"
        )
    if table.get("scopes") is not None:
        oauth["scopes"] = scopes_of(table["scopes"], "scopes")
    for rest, value in theirs.items():
        if not is_empty_value(value):
            note(f"oauth.{rest}", NOTHING_LIKE_IT)
    if oauth:
        ours["oauth"] = oauth


def _import_shared(table: Entry, ours: dict[str, Any], note: Noting) -> None:
    seconds = table.get("tool_timeout_sec")
    if seconds is not None:
        given = seconds * 1000 if type(seconds) in (int, float) else None
        if (limit := time_limit(given, "tool_timeout_sec", note)) is not None:
            ours["timeout"] = limit
    for field, theirs in _TOOL_LISTS.items():
        if table.get(theirs) is not None:
            ours[field] = texts_of(table[theirs], theirs)


def _read(text: str, note: Noting, field: str) -> str:
    return variables.incoming(DIALECT, text, note, field)


# ---- export


def export_entry(given: Any, note: Noting) -> dict[str, Any]:
    """Dragoman's entry as Codex's table, or `CannotTranslate`."""
    entry = as_entry(given)
    kind = kind_of(entry, ("url",)) or "http"
    if kind == "stdio":
        table, taken = _export_program(entry, note), {"type", "command", "args", "env", "cwd"}
    elif kind == "http":
        table, taken = _export_address(entry, note), {"type", "url", "headers", "oauth"}
        _export_sign_in(entry, table, note)
    else:
        raise CannotTranslate("type", "Codex cannot reach servers of this type; the server is left out")
    _export_shared(entry, table, note)
    for field, value in entry.items():
        is_read = field in taken or field == "timeout" or field in _TOOL_LISTS
        if not is_read and not is_default(field, value):
            note(field, "Codex has no such field; it is left out")
    return table


def _export_program(entry: Entry, note: Noting) -> dict[str, Any]:
    table: dict[str, Any] = {"command": _plain(needed_text(entry, "command"), "command")}
    if entry.get("args") is not None:
        args = enumerate(texts_of(entry["args"], "args"))
        table["args"] = [_plain(item, f"args[{number}]") for number, item in args]
    env, passed = _export_env(map_of(entry.get("env") or {}, "env"), note)
    table |= {key: value for key, value in (("env", env), ("env_vars", passed)) if value}
    cwd = entry.get("cwd")
    if cwd is not None and variables.has_variable(text_of(cwd, "cwd")):
        note("cwd", "Codex knows no variables; it is left out")
    elif cwd is not None:
        table["cwd"] = text_of(cwd, "cwd")
    return table


def _export_env(env: Mapping[str, str], note: Noting) -> tuple[dict[str, str], list[str]]:
    plain: dict[str, str] = {}
    passed: list[str] = []
    for name, text in env.items():
        found = variables.whole_variable(text)
        if found and found[0] == name:
            passed.append(name)
            _export_default(found[1], name, note, f"env.{name}", optional=True)
        elif variables.has_variable(text):
            note(f"env.{name}", "Codex passes a variable on under its own name only; it is left out")
        else:
            plain[name] = text
    return plain, passed


def _export_address(entry: Entry, note: Noting) -> dict[str, Any]:
    table: dict[str, Any] = {"url": _plain(address_of(entry, "url"), "url")}
    plain: dict[str, str] = {}
    named: dict[str, str] = {}
    for header, text in map_of(entry.get("headers") or {}, "headers").items():
        field = f"headers.{header}"
        bearer = _BEARER.fullmatch(text) if header.lower() == "authorization" else None
        found = variables.whole_variable(bearer.group(1) if bearer else text)
        if found is None and variables.has_variable(text):
            note(field, "Codex takes a header from a variable only as a whole; it is left out")
            continue
        if found is None:
            plain[header] = text
            continue
        _export_default(found[1], found[0], note, field, optional=bearer is None)
        if bearer:
            table["bearer_token_env_var"] = found[0]
        else:
            named[header] = found[0]
    pairs = (("http_headers", plain), ("env_http_headers", named))
    return table | {field: headers for field, headers in pairs if headers}


def _export_default(default: str | None, name: str, note: Noting, field: str, *, optional: bool) -> None:
    """`optional`: whether Codex works without the variable if it is not set."""
    if default or (default is not None and not optional):
        note(field, f"Codex knows no defaults: set the variable {name} there")
    elif default is None and optional:
        note(field, f"Codex starts the server even where {name} is not set")


def _export_sign_in(entry: Entry, table: dict[str, Any], note: Noting) -> None:
    for name, value in as_entry(entry.get("oauth") or {}).items():
        field = f"oauth.{name}"
        if name == "scopes":
            table["scopes"] = scopes_of(value, field)
        elif name == "clientId" and not variables.has_variable(text_of(value, field)):
            table["oauth"] = {"client_id": value}
        elif not is_empty_value(value):
            note(field, "Codex has no such field, or knows no variables in it; it is left out")


def _export_shared(entry: Entry, table: dict[str, Any], note: Noting) -> None:
    given = entry.get("timeout")
    if given is not None and (limit := time_limit(given, "timeout", note)) is not None:
        table["tool_timeout_sec"] = limit // 1000 if limit % 1000 == 0 else limit / 1000
    for field, theirs in _TOOL_LISTS.items():
        if entry.get(field) is not None:
            table[theirs] = texts_of(entry[field], field)


def _plain(text: str, field: str) -> str:
    if variables.has_variable(text):
        raise CannotTranslate(field, "Codex knows no variables here; the server is left out")
    return text
