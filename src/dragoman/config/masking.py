"""Entries for showing: what may be secret is covered. Pure.

I own: which values of an entry are shown. Variables are shown as written, never expanded; literal values of
`env` and `headers`, of queries, and of arguments that look like secrets are covered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

COVER: Final = "•••"

_VARIABLE: Final = re.compile(r"(\$\{[^}]*\})")
_HARMLESS: Final = re.compile(r"\s*(?:Bearer|Basic|Token|token)?\s*", re.ASCII)
_SECRET_WORD: Final = re.compile(r"token|key|secret|passw|pwd|auth|credential|bearer", re.IGNORECASE)
_SECRET_LOOK: Final = re.compile(
    r"(?:sk|pk|rk|ghp|gho|ghu|ghs|glpat|xox[abprs]|eyJ|AKIA|github_pat)[-_A-Za-z0-9.]{12,}"
    r"|[A-Za-z0-9_\-]{32,}|[A-Za-z0-9+/]{40,}={0,2}"
)
_USERINFO: Final = re.compile(r"//[^/@\s]*@")
_COVERED_WHOLE: Final = frozenset({"env", "headers"})


def masked_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with everything covered that may be secret."""
    return {field: _masked(field, value) for field, value in entry.items()}


def masked_value(value: str) -> str:
    """Only variables and words such as Bearer are shown."""
    pieces = _VARIABLE.split(value)
    return "".join(
        _plain_variable(piece) if number % 2 else piece if _HARMLESS.fullmatch(piece) else COVER
        for number, piece in enumerate(pieces)
    )


def masked_url(url: str) -> str:
    """Address and path; values of the query are covered."""
    address, question, query = _USERINFO.sub(f"//{COVER}@", url).partition("?")
    address = _SECRET_LOOK.sub(COVER, address)
    pairs = [f"{key}={masked_value(value)}" for key, _, value in (p.partition("=") for p in query.split("&"))]
    return address + (f"?{'&'.join(pairs)}" if question else "")


def masked_words(words: list[str]) -> list[str]:
    """Arguments; the value that follows `--token`, and what looks like a secret, is covered."""
    shown: list[str] = []
    for number, word in enumerate(words):
        before = words[number - 1] if number else ""
        if before.startswith("-") and "=" not in before and _SECRET_WORD.search(before):
            shown.append(masked_value(word))
        else:
            shown.append(_masked_word(word))
    return shown


def _masked_word(word: str) -> str:
    name, equals, value = word.partition("=")
    if equals and _SECRET_WORD.search(name):
        return f"{name}={masked_value(value)}"
    if "://" in word:
        return masked_url(word)
    return word if _VARIABLE.search(word) and "${" in word else _SECRET_LOOK.sub(_cover_look, word)


def _cover_look(found: re.Match[str]) -> str:
    """Long words that are plainly words (paths, package names) are no secrets."""
    text = found.group()
    return COVER if re.search(r"\d", text) and re.search(r"[A-Za-z]", text) else text


def _masked(field: str, value: Any) -> Any:
    if field == "url" and isinstance(value, str):
        return masked_url(value)
    if field == "args" and isinstance(value, list | tuple):
        return masked_words([str(word) for word in cast("list[Any]", value)])
    if field in ("command", "cwd", "type", "headersHelper") and isinstance(value, str):
        return _masked_word(value)
    return _masked_deep(field, value)


def _masked_deep(field: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        inner = cast("Mapping[str, Any]", value)
        if field in _COVERED_WHOLE:
            return {key: masked_value(str(item)) for key, item in inner.items()}
        return {key: _masked_deep(key, item) for key, item in inner.items()}
    if isinstance(value, str) and _SECRET_WORD.search(field):
        return masked_value(value)
    if isinstance(value, str):
        return _masked_word(value)
    if isinstance(value, list | tuple):
        return [_masked_deep(field, item) for item in cast("list[Any]", value)]
    return value


def _plain_variable(variable: str) -> str:
    """`${TOKEN:-literal}` holds a literal too."""
    name, has_default, _ = variable[2:-1].partition(":-")
    return f"${{{name}:-{COVER}}}" if has_default else variable
