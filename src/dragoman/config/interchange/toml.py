"""TOML text: finds the position of errors, and inserts a table so that the rest stays unchanged.

A changed text is parsed again before it is returned, and contains exactly the intended values; where that is
not possible, an error is raised and nothing is changed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from dragoman.errors import ConfigFileError

_BYTE_ORDER_MARK: Final = "\ufeff"
_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
# The standard library's reader needs time that grows with the cube of a dotted key's length.
_ENDLESS_KEY: Final = re.compile(r"""(?<![\w"'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){100}""")


def parse(text: str, source: str) -> dict[str, Any]:
    """The document, or a `ConfigFileError` with its place."""
    if _ENDLESS_KEY.search(text):
        raise ConfigFileError(source, "it is nested too deeply")
    try:
        return tomllib.loads(text.removeprefix(_BYTE_ORDER_MARK))
    except RecursionError:
        raise ConfigFileError(source, "it is nested too deeply") from None
    except ValueError as error:
        raise _explain(text, source, str(error)) from None


def _explain(text: str, source: str, message: str) -> ConfigFileError:
    found = _PLACE.search(message)
    reason = f"it is not valid TOML: {_PLACE.sub('', message)}"
    if found is None:
        return ConfigFileError(source, reason)
    if found.group(1) is None:
        return ConfigFileError(source, reason, line=text.count("\n") + 1)
    return ConfigFileError(source, reason, line=int(found.group(1)), column=int(found.group(2)))


def put(text: str, block: Sequence[str], name: str, table: Mapping[str, Any], source: str) -> str:
    """The text with the table at `[block.name]`. What is there under that name is replaced."""
    meant = _with(parse(text, source), (*block, name), table)
    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    bare = text.removeprefix(_BYTE_ORDER_MARK)
    for attempt in _attempts(bare, (*block, name), table):
        changed = _tried(attempt, meant)
        if changed is not None:
            return mark + changed
    raise ConfigFileError(
        source, "a table cannot be put there without changing the rest", hint="Change the file by hand."
    )


def _attempts(text: str, path: tuple[str, ...], table: Mapping[str, Any]) -> list[Callable[[], str]]:
    """An addition to the end touches nothing else, so it comes first; it fails where the name is taken."""
    return [lambda: _appended(text, path, table), lambda: _edited(text, path, table)]


def _tried(attempt: Callable[[], str], meant: dict[str, Any]) -> str | None:
    # tomlkit raises errors of many kinds for tables that are spread over a file; each means the same here.
    try:
        changed = attempt()
        return changed if _canonical(tomllib.loads(changed)) == _canonical(meant) else None
    except Exception:
        return None


def _appended(text: str, path: tuple[str, ...], table: Mapping[str, Any]) -> str:
    import tomlkit

    value: Any = table
    for key in reversed(path):
        value = {key: value}
    addition = tomlkit.dumps(value)
    if text and not text.endswith("\n"):
        text += "\n"
    joined = text + ("\n" if text else "") + addition
    return joined.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in text else joined


def _edited(text: str, path: tuple[str, ...], table: Mapping[str, Any]) -> str:
    """Changes the table where it stands, member by member, so that comments beside them stay."""
    import tomlkit

    document: Any = tomlkit.parse(text)
    owner: Any = document
    for key in path[:-1]:
        owner = owner[key]
    old: Any = owner.get(path[-1])
    if old is None:
        owner[path[-1]] = dict(table)
        return tomlkit.dumps(document)
    before: dict[str, Any] = old.unwrap()
    for key in [key for key in before if key not in table]:
        del old[key]
    for key, value in table.items():
        if key not in before or _canonical(before[key]) != _canonical(value):
            old[key] = value
    return tomlkit.dumps(document)


def _with(document: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    if len(path) == 1:
        return {**document, path[0]: value}
    inner = cast("dict[str, Any]", document.get(path[0], {}))
    return {**document, path[0]: _with(inner, path[1:], value)}


def _canonical(value: Any) -> Any:
    """For comparing: order of keys means nothing, 1 is not 1.0 nor true, and nan equals nan."""
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return sorted((str(key), _canonical(item)) for key, item in pairs)
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in cast("list[Any]", value)]
    return repr(value)
