"""The text of a host's file, JSON or TOML.

Reads it, with file, line and column of a syntax error, finds the servers in it, and inserts entries so that
the rest stays unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from dragoman.config import jsonc
from dragoman.config.interchange import documents, toml
from dragoman.config.interchange.documents import KeyPath
from dragoman.config.interchange.hosts import Format
from dragoman.errors import ConfigFileError


def parse(row: Format, text: str, source: str) -> dict[str, Any]:
    """The document, or a `ConfigFileError`. An empty file is an empty document."""
    if row.is_toml:
        return toml.parse(text, source)
    if not text.strip("\ufeff \t\r\n"):
        return {}
    try:
        document = jsonc.parse(text, comments=row.comments)
    except jsonc.SyntaxProblem as problem:
        raise ConfigFileError(
            source, problem.reason, line=problem.line, column=problem.column, hint=_json_hint(row, text)
        ) from None
    if not isinstance(document, dict):
        raise ConfigFileError(source, "expected a JSON object", line=1)
    return cast("dict[str, Any]", document)


def _json_hint(row: Format, text: str) -> str | None:
    try:
        jsonc.parse(text, comments=True)
    except jsonc.SyntaxProblem:
        return None
    return f"It has comments or trailing commas, which {row.title} does not accept."


def block(
    row: Format, document: Mapping[str, Any], text: str, source: str
) -> tuple[KeyPath, dict[str, Any] | None]:
    """Where the servers are, and what is there now, if anything."""
    try:
        return documents.block_of(document, row.blocks)
    except documents.NotABlock as problem:
        line, column = (None, None) if row.is_toml else jsonc.locate(text, problem.path) or (None, None)
        raise ConfigFileError(
            source,
            f'"{".".join(problem.path)}" is not an object',
            line=line,
            column=column,
            hint="It maps each server's name to its entry.",
        ) from None


def switched_off(row: Format, text: str, names: Sequence[str], source: str) -> str:
    """The text with the names in the host's list of servers that are switched off."""
    if row.off_list is None or not names:
        return text
    try:
        listed = documents.list_at(jsonc.parse(text, comments=True), row.off_list)
        return jsonc.set_value(text, row.off_list, [*listed, *names])
    except jsonc.SyntaxProblem as problem:
        raise ConfigFileError(source, problem.reason, line=problem.line, column=problem.column) from None


def put(
    row: Format,
    text: str,
    path: KeyPath,
    found: Mapping[str, Any] | None,
    changes: Mapping[str, dict[str, Any]],
    source: str,
) -> str:
    """The text with the entries in it. `found` is what `block` found."""
    if row.is_toml:
        for name, entry in changes.items():
            text = toml.put(text, path, name, entry, source)
        return text
    if found is None and (changes or not text.strip()):
        text = jsonc.set_value(text, path, {})
    for name, entry in changes.items():
        text = jsonc.set_value(text, (*path, name), entry)
    return text
