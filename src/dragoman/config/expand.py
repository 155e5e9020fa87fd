"""Expands variables in entries: `${VAR}` and `${VAR:-default}`; also `${env:VAR}`, as other hosts write it.
Pure.

Applies to every string of an entry, except keys. It is not a shell: variables do not nest, nothing is
expanded twice, and text that only resembles a variable (`$VAR`, `${VAR%x}`) stays unchanged. A missing
variable is an error that names it, never an empty string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from dragoman.errors import ConfigError

PLACEHOLDERS: Final = ("unset", "https://unset.invalid", "1")
"""The value that replaces unset variables, where an entry is only examined."""

_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def expand_entry(name: str, entry: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """The entry with every variable replaced, or a `ConfigError` naming server, field and variable."""
    return {field: _expand(name, field, value, environ) for field, value in entry.items()}


def variables_in(value: Any, *, optional: bool = False) -> set[str]:
    """The variables without which an entry cannot be expanded; optionally also those with a default."""
    return {each.group(1) for each in _found_in(value) if optional or each.group(2) is None}


def filled_in(value: Any, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The variables of an entry, each with its expanded value."""
    return ((each.group(1), environ.get(each.group(1)) or each.group(2) or "") for each in _found_in(value))


def _found_in(value: Any) -> Iterator[re.Match[str]]:
    if isinstance(value, str):
        yield from _VARIABLE.finditer(value[: value.rfind("}") + 1])
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, Any]", value).values():
            yield from _found_in(item)
    elif isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            yield from _found_in(item)


def guesses(value: Any, environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Environments in which an entry with unset variables can be expanded; empty if all are set."""
    missing = variables_in(value) - environ.keys()
    for placeholder in PLACEHOLDERS if missing else ():
        yield {**environ, **dict.fromkeys(missing, placeholder)}


def _expand(name: str, field: str, value: Any, environ: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        # Beyond the last brace nothing can match, and looking there would take time without end.
        end = value.rfind("}") + 1
        return _VARIABLE.sub(lambda found: _value(name, field, found, environ), value[:end]) + value[end:]
    if isinstance(value, Mapping):
        inner = cast("Mapping[str, Any]", value)
        return {key: _expand(name, f"{field}.{key}", item, environ) for key, item in inner.items()}
    if isinstance(value, list | tuple):
        items = enumerate(cast("list[Any]", value))
        return [_expand(name, f"{field}[{number}]", item, environ) for number, item in items]
    return value


def _value(name: str, field: str, found: re.Match[str], environ: Mapping[str, str]) -> str:
    variable, default = found.group(1), found.group(2)
    if default is not None and "${" in default:
        raise ConfigError(
            f"server {name!r}: {_shown(field)} has a variable within the default of {variable}",
            hint="Variables do not nest; give a plain default.",
        )
    value = environ.get(variable)
    if value is None and default is None:
        raise ConfigError(
            f"server {name!r}: {_shown(field)} needs the variable {variable}, which is not set",
            hint=f"Set {variable}, or write ${{{variable}:-default}}.",
        )
    return value or default or ""


def _shown(field: str) -> str:
    from dragoman.config.masking import masked_name  # which uses this module

    return masked_name(field)
