"""Reads the file of a gateway. An error names the file, the entry in it, the cause and the next step."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import msgspec

from dragoman.config.file_reading import read_object
from dragoman.errors import ConfigError, ConfigFileError
from dragoman.gateway.settings import (
    SEARCH_NAMES,
    CallerEntry,
    GatewaySettings,
    OAuthEntry,
    Rights,
    Selection,
    StoreEntry,
    View,
)
from dragoman.interaction import LOCAL_CALLER
from dragoman.private_files import is_open_to
from dragoman.urls import is_loopback, parse_url

TOKEN_CHARACTERS: Final = 16
"""The least characters of a token: a shorter one can be guessed."""
KEY_CHARACTERS: Final = 32
"""The least characters of the key of a store."""
LEAST_RESULT_TOKENS: Final = 1000
"""A smaller limit of results would leave little but the words about it."""
GUIDE: Final = "docs/guides/gateway.md"
_LONG: Final = "Use a long random text, such as the output of `openssl rand -hex 32`."
_URL: Final = "Write a whole URL, such as https://login.example.com."


class Problem(NamedTuple):
    cause: str
    hint: str


def read_settings(path: Path) -> GatewaySettings:
    """The settings in a file; `ConfigError` if they cannot be used."""
    found = read_object(path)
    if found is None:
        raise ConfigFileError(str(path), "the file does not exist", hint=f"{GUIDE} shows what it contains.")
    with contextlib.suppress(FileNotFoundError):  # it was taken away since it was read
        if is_open_to(0o077, os.stat(path)):
            raise ConfigError(f"{path} contains tokens, and others can read it", hint=f"chmod 600 {path}")
    settings = _converted(path, found[1])
    try:
        msgspec.json.encode(settings)
    except UnicodeEncodeError:
        raise ConfigFileError(
            str(path),
            "it contains a lone surrogate: an escape from \\ud800 to \\udfff without its other half",
            hint="Write the whole character.",
        ) from None
    for problem in problems_of(settings):
        raise ConfigFileError(str(path), problem.cause, hint=problem.hint)
    return settings


def _converted(path: Path, value: Mapping[str, Any]) -> GatewaySettings:
    hint = f"{GUIDE} lists the keys and their values."
    try:
        settings = msgspec.convert(value, GatewaySettings)
    except msgspec.ValidationError as error:
        raise ConfigFileError(str(path), next(_unusable_entries(value), str(error)), hint=hint) from None
    for cause in _lists_without_value(value):
        raise ConfigFileError(str(path), cause, hint=hint)
    return settings


def _named_entries(value: Mapping[str, Any]) -> Iterator[tuple[str, Any, type]]:
    """The entries that have names: each as it is called in messages, its value, and its type."""
    oauth: Any = value.get("oauth")
    scopes: Any = cast("Mapping[str, Any]", oauth).get("scopes") if isinstance(oauth, dict) else None
    sections: list[tuple[str, Any, type]] = [
        ("caller", value.get("callers"), CallerEntry),
        ("scope", scopes, Rights),
        ("view", value.get("views"), View),
    ]
    for kind, entries, entry_type in sections:
        named = cast("dict[str, Any]", entries) if isinstance(entries, dict) else {}
        yield from ((f"{kind} {name!r}", entry, entry_type) for name, entry in named.items())


def _unusable_entries(value: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the entries that have names, which errors about the whole file leave out."""
    for name, entry, entry_type in _named_entries(value):
        try:
            msgspec.convert(entry, entry_type)
        except msgspec.ValidationError as error:
            yield f"{name}: {error}"


def _lists_without_value(value: Mapping[str, Any]) -> Iterator[str]:
    """The lists of rights and views that are null. Without the key, everything may be used: `null` may be
    left from a program that was to write a list."""
    for name, entry, _ in _named_entries(value):
        for key in ("servers", "tools", "views"):
            if entry.get(key, ()) is None:
                yield f'{name}: "{key}" is null: write [] for none, or leave the key out for all'


def problems_of(settings: GatewaySettings) -> list[Problem]:
    """Why settings of the right form cannot be used."""
    return [
        *_problems_of_callers(settings.callers),
        *_problems_of_access(settings),
        *(_problems_of_oauth(settings.oauth, settings.callers) if settings.oauth is not None else ()),
        *(_problems_of_public_url(settings.public_url) if settings.public_url else ()),
        *(_problems_of_store(settings.store) if settings.store is not None else ()),
        *_problems_of_rights(settings),
        *_problems_of_views(settings.views),
        *_problems_of_limits(settings),
    ]


def _problems_of_callers(callers: Mapping[str, CallerEntry]) -> Iterator[Problem]:
    first_with: dict[str, str] = {}
    for name, caller in callers.items():
        if name == LOCAL_CALLER.id:
            yield Problem(f"a caller is named {name!r}", "Give it another name: this one means the operator.")
        if len(caller.token) < TOKEN_CHARACTERS:
            yield Problem(f"the token of caller {name!r} has fewer than {TOKEN_CHARACTERS} characters", _LONG)
        other = first_with.setdefault(caller.token, name)
        if other != name:
            yield Problem(f"the callers {other!r} and {name!r} have the same token", "Give each its own.")


def _problems_of_access(settings: GatewaySettings) -> Iterator[Problem]:
    if not settings.callers and settings.oauth is None:
        yield Problem(
            "it names neither callers nor oauth",
            'Name at least one caller: {"callers": {"NAME": {"token": "…"}}}.',
        )


def _problems_of_oauth(oauth: OAuthEntry, callers: Mapping[str, CallerEntry]) -> Iterator[Problem]:
    for key, url in (("issuer", oauth.issuer), ("audience", oauth.audience)):
        try:
            parse_url(url)
        except ConfigError as error:
            yield Problem(f"oauth.{key}: {error}", _URL)
    for name in callers:
        if name.endswith(f"@{oauth.issuer}"):
            yield Problem(
                f"the caller {name!r} has the name that a token of the issuer gives",
                "Give the caller a name that does not end with the issuer.",
            )


def _problems_of_public_url(url: str) -> Iterator[Problem]:
    try:
        parsed = parse_url(url)
    except ConfigError as error:
        yield Problem(f"publicUrl: {error}", _URL)
        return
    if "?" in url or "#" in url:
        yield Problem("publicUrl has a query or a fragment", "Write scheme, host and port only.")
    elif parsed.scheme != "https" and not is_loopback(parsed):
        yield Problem(
            "publicUrl must begin with https://: tokens depend on what browsers send there",
            "Put a reverse proxy with TLS in front, and name its address.",
        )


def _problems_of_store(store: StoreEntry) -> Iterator[Problem]:
    if len(store.key) < KEY_CHARACTERS:
        yield Problem(f"the key of the store has fewer than {KEY_CHARACTERS} characters", _LONG)


def _problems_of_rights(settings: GatewaySettings) -> Iterator[Problem]:
    known = ", ".join(settings.views)
    hint = f"The views of the file: {known}." if known else "The file has no views: add it to `views`."
    for whose, rights in _rights(settings):
        for view in rights.views or ():
            if view not in settings.views:
                yield Problem(f"{whose} names the view {view!r}, which does not exist", hint)


def _problems_of_views(views: Mapping[str, View]) -> Iterator[Problem]:
    for name, view in views.items():
        if not _is_path(name):
            yield Problem(
                f"the view {name!r} needs a name of letters, digits, - and _",
                "It is part of a path: rename it.",
            )
        for new in view.rename.values():
            if new in SEARCH_NAMES:
                yield Problem(
                    f"the view {name!r} gives a tool the name {new!r}, which the gateway uses itself",
                    "Choose another name in `rename`.",
                )


def _problems_of_limits(settings: GatewaySettings) -> Iterator[Problem]:
    limits = [
        ("", settings.result_tokens),
        *((f" of the view {name!r}", view.result_tokens or 0) for name, view in settings.views.items()),
    ]
    for whose, tokens in limits:
        if tokens and tokens < LEAST_RESULT_TOKENS:
            yield Problem(
                f"resultTokens{whose} is less than {LEAST_RESULT_TOKENS}, and not 0",
                f"Write 0 for no limit, or at least {LEAST_RESULT_TOKENS}.",
            )
    counted = [(f" of caller {name!r}", each.calls_per_minute) for name, each in settings.callers.items()]
    counted.append((" of oauth", None if settings.oauth is None else settings.oauth.calls_per_minute))
    for whose, calls in counted:
        if calls is not None and calls < 1:
            yield Problem(f"callsPerMinute{whose} is less than 1", "Leave it out for no limit.")


def unknown_servers(settings: GatewaySettings, configured: Collection[str]) -> list[str]:
    """Which callers, scopes and views name servers that are not configured: they may be added later."""
    selections: list[tuple[str, Selection]] = [
        *_rights(settings),
        *((f"view {name!r}", view) for name, view in settings.views.items()),
    ]
    return [
        f"{whose} names the server {server!r}, which is not configured; until it is, it has no effect"
        for whose, selection in selections
        for server in selection.servers or ()
        if server not in configured
    ]


def _rights(settings: GatewaySettings) -> list[tuple[str, Rights]]:
    """Those of callers and scopes, each with a name for messages."""
    scopes: Mapping[str, Rights] = {} if settings.oauth is None else settings.oauth.scopes
    return [
        *((f"caller {name!r}", each) for name, each in settings.callers.items()),
        *((f"scope {name!r}", each) for name, each in scopes.items()),
    ]


def _is_path(name: str) -> bool:
    return bool(name) and all(each.isascii() and (each.isalnum() or each in "-_") for each in name)
