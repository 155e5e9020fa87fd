"""An organisation's list of servers: fetched from an endpoint, and cached in case the endpoint does not
answer.

One request to one URL, with one bearer, no redirect, bounded in time and size. Which entries of the answer
can be used is decided in `connector_entries.py`; the cached copy is checked again each time it is read.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from dragoman.cleaning import one_line
from dragoman.config.connector_entries import connector_entry, safe_origins
from dragoman.config.expand import expand_entry
from dragoman.config.file_reading import read_object
from dragoman.config.files import Named, first_servers
from dragoman.config.model import fingerprint
from dragoman.config.schema import ConnectorsConfig
from dragoman.errors import ConfigError, ConfigFileError
from dragoman.urls import is_loopback, parse_url

TIMEOUT_SECONDS: Final = 5.0
LIMIT_BYTES: Final = 1024 * 1024
FRESH_SECONDS: Final = 300.0
RETRY_SECONDS: Final = 30.0
"""How soon after a failure the list is fetched again."""


class Cached(Struct, frozen=True):
    """The list as it was last fetched."""

    source: str
    servers: Mapping[str, object] = {}
    problem: str | None = None
    age_seconds: float | None = None
    is_readable: bool = True

    @property
    def is_fresh(self) -> bool:
        return self.age_seconds is not None and 0 <= self.age_seconds < FRESH_SECONDS


def read_cache(path: Path, config: ConnectorsConfig) -> Cached:
    source = f"connectors of {_place(config)}"
    try:
        read = read_object(path)
    except ConfigFileError as error:
        problem = f"{error}; the connector list will be fetched again"
        return Cached(source, problem=problem, is_readable=False)
    document = read[1] if read else {}
    servers, fetched = document.get("servers"), document.get("fetchedAt")
    if document.get("list") != fingerprint(config.url) or not isinstance(servers, dict):
        return Cached(source)
    age = time.time() - fetched if isinstance(fetched, int | float) else None
    problem = document.get("problem")
    return Cached(
        source,
        entries_of({"mcpServers": servers}, is_local=_is_local(config, os.environ))[0],
        one_line(problem, 300) if isinstance(problem, str) else None,
        age,
    )


async def refresh(
    path: Path,
    config: ConnectorsConfig,
    environ: Mapping[str, str] = os.environ,
    *,
    proxy_for: Callable[[str], str | None] = lambda url: None,
) -> bool:
    """Fetches and caches the list; after a failure, which is reported, the old one stays. Returns whether
    anything changed.

    `proxy_for`: the proxy through which a URL is reached, if any.
    """
    before = await asyncio.to_thread(read_cache, path, config)
    fetched_at = time.time()
    try:
        servers, problems = entries_of(
            await _fetch(config, environ, proxy_for), is_local=_is_local(config, environ)
        )
    except ConfigError as error:
        servers, problems = dict(before.servers), [str(error)]
        fetched_at -= FRESH_SECONDS - RETRY_SECONDS
    problem = f"{before.source}: {'; '.join(problems)}" if problems else None
    await asyncio.to_thread(_keep, path, config, servers, problem, fetched_at)
    return servers != before.servers or problem != before.problem


def entries_of(document: Any, *, is_local: bool = False) -> tuple[dict[str, Any], list[str]]:
    """The usable entries of an answer: `{"mcpServers": {…}}` or `{"connectors": [{"name": …, "url": …}]}`.

    `is_local`: the list comes from this machine, and may therefore name servers of this machine.
    """
    servers: dict[str, Any] = {}
    named, problems = first_servers(_named(document))
    for name, entry in named:
        try:
            servers[name] = connector_entry(entry, is_local=is_local)
        except ConfigError as error:
            problems.append(f"{one_line(name, 80)!r} is left out: {error}")
    return servers, problems


def _named(document: Any) -> list[Named]:
    if isinstance(document, dict):
        answer = cast("dict[str, Any]", document)
        if isinstance(block := answer.get("mcpServers"), dict):
            return list(cast("dict[str, Any]", block).items())
        if isinstance(rows := answer.get("connectors"), list):
            return [_named_row(number, row) for number, row in enumerate(cast("list[Any]", rows), 1)]
    raise ConfigError('the answer has neither "mcpServers" nor "connectors"')


def _named_row(number: int, row: Any) -> Named:
    if not isinstance(row, dict):
        return f"connector {number}", row
    fields = dict(cast("dict[str, Any]", row))
    return str(fields.pop("name", "")), fields


async def _fetch(
    config: ConnectorsConfig, environ: Mapping[str, str], proxy_for: Callable[[str], str | None]
) -> Any:
    """The decoded answer; raises `ConfigError` with a text without secrets."""
    import aiohttp

    from dragoman.resolver import Resolver

    expanded = expand_entry("connectors", {"url": config.url, "bearer": config.bearer}, environ)
    url = parse_url(expanded["url"])
    if url.scheme != "https" and not is_loopback(url):
        raise ConfigError("the connector list must come over https")
    headers = {"Accept": "application/json"}
    if expanded["bearer"]:
        headers["Authorization"] = f"Bearer {expanded['bearer']}"
    limit = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
    try:
        async with (
            # Not `trust_env`: it would also send what ~/.netrc holds.
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(resolver=Resolver()),
                timeout=limit,
                trust_env=False,
                proxy=proxy_for(str(url)),
            ) as session,
            session.get(str(url), headers=headers, allow_redirects=False) as response,
        ):
            if response.status != 200:
                raise ConfigError(f"the endpoint answered {response.status}")
            data = await response.content.read(LIMIT_BYTES + 1)
            while len(data) <= LIMIT_BYTES and (more := await response.content.read(LIMIT_BYTES)):
                data += more
    except TimeoutError:
        raise ConfigError(f"no answer within {TIMEOUT_SECONDS:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise ConfigError(f"it cannot be reached ({type(error).__name__})") from None
    if len(data) > LIMIT_BYTES:
        raise ConfigError("the answer is larger than 1 MB")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        raise ConfigError("the answer is not JSON") from None


def _keep(
    path: Path,
    config: ConnectorsConfig,
    servers: Mapping[str, Any],
    problem: str | None,
    fetched_at: float,
) -> None:
    from dragoman.config.writer import edit_state

    document = {
        "list": fingerprint(config.url),
        "fetchedAt": fetched_at,
        "servers": dict(servers),
        "problem": problem,
    }
    edit_state(path, lambda _: document)


def bearer_origins(config: ConnectorsConfig | None, environ: Mapping[str, str]) -> frozenset[str]:
    """The origins that the organisation's token may be sent to; by default the one its list comes from."""
    if config is None:
        return frozenset()
    return safe_origins(config.bearer_origins or (_endpoint(config, environ),))


def _is_local(config: ConnectorsConfig, environ: Mapping[str, str]) -> bool:
    try:
        return is_loopback(parse_url(_endpoint(config, environ)))
    except ConfigError:
        return False


def _endpoint(config: ConnectorsConfig, environ: Mapping[str, str]) -> str:
    try:
        return expand_entry("connectors", {"url": config.url}, environ)["url"]
    except ConfigError:
        return ""


def _place(config: ConnectorsConfig) -> str:
    """The endpoint without path and query, which may hold secrets."""
    if "${" in config.url:
        return "the organisation"
    try:
        return parse_url(config.url).host
    except ConfigError:
        return "the organisation"
