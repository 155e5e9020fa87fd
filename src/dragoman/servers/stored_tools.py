"""The tool lists of lazy servers, stored between runs.

There is one small file per server, named after a fingerprint of its entry and of the folder it starts in, so
that its tools can be shown before it is started. A file may be lost: the list is read again at each start of
the server.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Raw, structs

from dragoman import paths
from dragoman.atomic_write import write_cache
from dragoman.catalog.listing import ToolList, read_definitions
from dragoman.config.file_reading import read_bytes
from dragoman.config.model import ServerConfig
from dragoman.config.model import fingerprint as fingerprint_of
from dragoman.errors import ConfigFileError
from dragoman.wire.codec import DECODE_ERRORS
from dragoman.wire.messages import ABSENT, ToolDefinition

LIMIT_BYTES: Final = 4 * 1024 * 1024


def key_of(config: ServerConfig) -> str:
    """The fingerprint of the entry in the folder it starts in: elsewhere, the same command may be another
    program."""
    folder, fingerprint = config.cwd or "", config.fingerprint()
    if not config.transport.starts_command or os.path.isabs(folder):
        return fingerprint
    try:
        folder = os.path.abspath(folder)
    except OSError:  # the working directory was deleted
        folder = ""
    return fingerprint_of([fingerprint, folder])


def load(fingerprint: str) -> ToolList | None:
    """The list as it was last time; judged like one that a server sends."""
    try:
        data = read_bytes(_file(fingerprint)) or b"[]"
        raws = msgspec.json.decode(data, type=list[Raw]) if len(data) <= LIMIT_BYTES else []
    except (ConfigFileError, *DECODE_ERRORS):
        return None
    definitions: dict[str, ToolDefinition] = {}
    problems: list[str] = []
    read_definitions(raws, definitions, problems)
    return ToolList(tuple(definitions.values()), tuple(problems)) if definitions else None


def store(fingerprint: str, tools: ToolList) -> None:
    data = msgspec.json.encode([_as_sent(definition) for definition in tools.items])
    if len(data) <= LIMIT_BYTES:
        write_cache(_file(fingerprint), data)


def _as_sent(definition: ToolDefinition) -> dict[str, Any]:
    pairs = ((field.encode_name, getattr(definition, field.name)) for field in structs.fields(definition))
    return {name: value for name, value in pairs if value is not None and value is not ABSENT}


def _file(fingerprint: str) -> Path:
    return paths.state_dir() / "tools" / f"{fingerprint}.json"
