"""Parses `WWW-Authenticate` (RFC 9110 §11.6.1). Pure.

Several headers, several challenges in one header, and quoted and unquoted values in any order are accepted.
Parts that cannot be parsed are ignored: a challenge is a hint of an untrusted server, and never causes an
error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, cast

from msgspec import Struct

from dragoman.protocol import HTTP_TOKEN

SCOPE_LIMIT: Final = 100
"""The maximum number of scopes from one challenge or document."""

_PART: Final = re.compile(
    rf'\s*,?\s*(?:({HTTP_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|({HTTP_TOKEN}))(?=\s*(?:,|$))'
    rf"|({HTTP_TOKEN})(?=\s|,|$)\s*)"
)
_TOKEN68: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*(?=\s*(?:,|$))")
_SCOPE: Final = re.compile(r"[\x21\x23-\x5B\x5D-\x7E]+")


class AuthChallenge(Struct, frozen=True):
    """One challenge: the scheme in lower case, and its parameters by name in lower case."""

    scheme: str
    parameters: Mapping[str, str]


def parse_challenges(headers: Iterable[str]) -> list[AuthChallenge]:
    return [challenge for header in headers for challenge in _challenges(header)]


def _challenges(header: str) -> Iterator[AuthChallenge]:
    scheme: str | None = None
    parameters: dict[str, str] = {}
    place = 0
    while place < len(header) and (found := _PART.match(header, place)):
        name, quoted, plain, new_scheme = found.groups()
        place = found.end()
        if new_scheme is not None:
            if scheme is not None:
                yield AuthChallenge(scheme, parameters)
            scheme, parameters = new_scheme.lower(), {}
            if (token := _TOKEN68.match(header, place)) and not _PART.match(header, place):
                place = token.end()
        elif scheme is not None:
            value = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            parameters.setdefault(name.lower(), value)
    if scheme is not None:
        yield AuthChallenge(scheme, parameters)


def oauth_parameters(headers: Iterable[str]) -> Mapping[str, str]:
    """The parameters of the first `Bearer` or `DPoP` challenge; `Bearer` challenges that name metadata take
    precedence."""
    found = [each for each in parse_challenges(headers) if each.scheme in ("bearer", "dpop")]
    with_metadata = [each for each in found if "resource_metadata" in each.parameters]
    return (with_metadata or found)[0].parameters if found else {}


def scopes_in(value: object) -> tuple[str, ...]:
    """The scopes of a text (separated by spaces) or of a list, each once, in order, without invalid ones."""
    words: object = value.split() if isinstance(value, str) else value
    if not isinstance(words, list):
        return ()
    words = cast("list[object]", words)
    valid = (word for word in words if isinstance(word, str) and len(word) <= 256 and _SCOPE.fullmatch(word))
    return tuple(dict.fromkeys(valid))[:SCOPE_LIMIT]
