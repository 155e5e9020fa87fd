"""Masks values of an entry that may be secret, before it is shown. Pure, and linear in the length of the
text.

Variables are shown as written, never expanded. Literal values of `env` and `headers`, of queries, of options
such as `--token`, and everything that looks like a key are masked. Programs, paths, hosts and ordinary
arguments stay readable, because a person decides by them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote

from dragoman.cleaning import COVER, cover
from dragoman.config.command_words import (
    BROKEN_SCHEME,
    SCHEME,
    SECRET_NAME,
    Kind,
    Piece,
    named_values,
    pieces,
    shell_words,
    unquoted,
    with_preceding,
)
from dragoman.config.expand import filled_in

if TYPE_CHECKING:
    from dragoman.config.model import ServerConfig

REPEATED_LENGTH: Final = 6
"""The shortest secret that is covered where an entry repeats it: a shorter one may be a part of any word."""

_VARIABLE: Final = re.compile(r"(\$\{[^{}]*\})")
_HARMLESS: Final = frozenset({"", "Bearer", "Basic", "Token", "token", "bearer"})
_KEY_LIKE: Final = re.compile(
    r"(?:sk|pk|rk|ghp|gho|ghu|ghs|glpat|github_pat|xox[abprs]|AKIA|eyJ)[-_A-Za-z0-9.]{8,}"
    r"|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    r"|[A-Za-z0-9+=_-]{24,}"
)
_LOGIN: Final = re.compile(rf"^[^/]*@|^[^/@:]*:[^@]*[^/@]@|^(?P<slashes>{BROKEN_SCHEME.pattern})[^/@\s]+@")
"""A user and a possible password before a host, also behind too many or too few slashes; `/@scope` in a path
is not one."""
_INNER_LOGIN: Final = re.compile(r"(?:(?<=//)|(?<=:/))[^/\s@]*:[^/\s]*@")
"""A login in a second URL, inside the path of the first."""
_NO_PORT: Final = re.compile(r"(?<=:)(?!\d*\Z)[^:\]]+\Z")
"""Text that is written where a port belongs, and is no number: a password whose `@` is missing or encoded."""
_BETWEEN_PARAMETERS: Final = re.compile(r"[\s,;]+")
_BETWEEN_KEYS: Final = re.compile(r"[,;:\s]+")
PART_LIMIT: Final = 40
"""How many parts of one secret are searched for in addition to the whole."""
_BETWEEN_NAME_AND_VALUE: Final = re.compile(r"[=:\s]+")
_VALUES_COVERED: Final = frozenset({"env", "headers"})
_SHOWN_WHOLE: Final = frozenset({"type", "protocol"})
_OBJECTS: Final = frozenset({"oauth", "tls"})


def masked_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with everything masked that may be secret."""
    program, shown = entry.get("command"), dict[str, Any]()
    for field, value in entry.items():
        if field == "args" and isinstance(program, str) and isinstance(value, list | tuple):
            # Some options mean a password only for certain programs.
            shown[field] = _masked_plain(field, [program, *cast("list[Any]", value)])[1:]
        else:
            shown[field] = _masked(field, value)
    return _without_repeated(_with_masked_names(shown), list(_named_secrets(entry)))


def _named_secrets(entry: Mapping[str, Any]) -> Iterator[str]:
    """The values of variables and headers with secret names, if they are written out and not short."""
    for field in _VALUES_COVERED:
        values: Any = entry.get(field)
        pairs = cast("Mapping[str, Any]", values).items() if isinstance(values, Mapping) else ()
        for name, value in pairs:
            if isinstance(value, str) and SECRET_NAME.search(name) and not _VARIABLE.search(value):
                secret = _without_scheme(value)
                if len(secret) >= REPEATED_LENGTH:
                    yield secret


def _without_repeated(shown: Any, secrets: Sequence[str]) -> Any:
    """The masked value without secrets that are known from another place of the entry."""
    if isinstance(shown, str):
        return cover(shown, secrets)
    if isinstance(shown, dict):
        pairs = cast("dict[str, Any]", shown).items()
        return {name: _without_repeated(value, secrets) for name, value in pairs}
    if isinstance(shown, list):
        return [_without_repeated(value, secrets) for value in cast("list[Any]", shown)]
    return shown


def masked_name(name: str) -> str:
    """The masked name of a variable, a header or a field, which may by mistake be or contain a secret."""
    separator = _BETWEEN_NAME_AND_VALUE.search(name)
    if separator is None:
        return _masked_word(name, "", "")
    head = _masked_word(name[: separator.start()], "", "")
    return head + separator.group() + (COVER if name[separator.end() :] else "")


def _with_masked_names(values: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for number, (name, value) in enumerate(values.items(), 1):
        covered = masked_name(name)
        # No name is lost if several become equal.
        shown[covered if covered not in shown else f"{covered} ({number})"] = value
    return shown


def literal_secrets(entry: Mapping[str, Any]) -> list[str]:
    """The names of variables and headers that look secret and are written out."""
    found: list[str] = []
    for field in _VALUES_COVERED:
        values: Any = entry.get(field)
        pairs = cast("Mapping[str, Any]", values).items() if isinstance(values, Mapping) else ()
        found += [name for name, value in pairs if SECRET_NAME.search(name) and COVER in masked_value(value)]
    return sorted(map(masked_name, found))


def secrets_of(
    config: ServerConfig, given: object = None, environ: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, ...]:
    """The secret values of an entry, with variables expanded: only its server may see them.

    `given`: the entry as written. The value of a variable with a secret name is secret wherever the entry
    uses it: `--gh ${GITHUB_TOKEN}`.
    """
    named = [
        value for name, value in (*filled_in(given, environ), *config.env.items()) if SECRET_NAME.search(name)
    ]
    found = [part for value in named for part in _parts_of_secret(value)]
    found += named
    found += [secret for value in config.env.values() for secret in _secrets_in_value(value)]
    found += [secret for name in (*config.env, *config.headers) for secret in _secrets_in_word(name, "", "")]
    found += [secret for name, value in config.headers.items() for secret in _secrets_in_header(name, value)]
    found += [*_secrets_in_url(config.url or ""), *_secrets_in_url(config.proxy or "")]
    found += _secrets_in_words((config.command or "", *config.args))
    found += _secrets_in_text(config.headers_helper or "")
    if config.oauth is not None:
        given = (config.oauth.client_secret, config.oauth.private_key, config.oauth.workload_token)
        found += [secret for secret in given if secret]
    return tuple(dict.fromkeys(value for value in found if value not in _HARMLESS))


def _parts_of_secret(value: str) -> list[str]:
    """The parts of a secret that a server may repeat: without quotes or a header's name, with real line ends,
    and each key of a list."""
    plain = value.strip("\"'")
    lines = plain.replace("\\r", "").replace("\\n", "\n")
    parts = [plain, lines, lines.replace("\n", "\r\n"), *lines.splitlines(), *_BETWEEN_KEYS.split(plain)]
    return parts[:PART_LIMIT]


def _secrets_in_header(name: str, value: str) -> Iterator[str]:
    """The value; for an authentication header also the text after an unusual scheme (`Bot …`), and each
    parameter (`session=…; …`)."""
    yield _without_scheme(value)
    if SECRET_NAME.search(name):
        yield value.partition(" ")[2].strip()
        for part in _BETWEEN_PARAMETERS.split(value):
            yield part.partition("=")[2].strip("\"'")


def _secrets_in_value(value: str) -> Iterator[str]:
    """Credentials inside a longer text: JSON, or words such as URLs, options and settings."""
    if value.lstrip()[:1] in ("{", "["):
        try:
            yield from _secrets_in_json("", json.loads(value))
            return
        except (ValueError, RecursionError):
            pass
    yield from named_values(value)
    words = value.split()
    yield from _secrets_in_words(words)
    yield from _secrets_in_words([part for word in words if "," in word for part in word.split(",")])


def _secrets_in_json(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner, item in cast("dict[str, Any]", value).items():
            yield from _secrets_in_json(inner, item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _secrets_in_json(name, item)
    elif isinstance(value, str):
        is_secret = SECRET_NAME.search(name) is not None
        yield from (_without_scheme(value),) if is_secret else _secrets_in_value(value)


def _secrets_in_words(words: Sequence[str]) -> Iterator[str]:
    for word, before, earlier in with_preceding(words):
        yield from _secrets_in_word(word, before, earlier)
        if any(char.isspace() for char in word):
            yield from named_values(word)


def _secrets_in_word(word: str, before: str, earlier: str) -> Iterator[str]:
    """The secrets that `_masked_word` covers."""
    return _secrets_in_pieces(pieces(word, before, earlier))


def _secrets_in_pieces(found: Iterable[Piece]) -> Iterator[str]:
    for kind, text in found:
        yield from _FIND[kind](text)


def _secrets_in_text(text: str) -> Iterator[str]:
    """The secrets that `masked_text` covers."""
    yield from _secrets_in_words([unquoted(word) for word in shell_words(text) if not word.isspace()])


def _secrets_in_url(url: str) -> Iterator[str]:
    """The secrets that `masked_url` covers."""
    rest, _, fragment = url.partition("#")
    rest, _, query = rest.partition("?")
    scheme = SCHEME.match(rest)
    address = rest[scheme.end() :] if scheme else rest
    if login := _LOGIN.match(address):
        yield from _login_secrets(login.group())
        address = address[login.end() :]
    elif scheme and (wrong := _NO_PORT.search(address.partition("/")[0])):
        yield from _as_written(wrong.group())
    for inner in _INNER_LOGIN.finditer(address):
        yield from _login_secrets(inner.group())
    yield from _keys_in(address.partition("/")[2])
    for pair in (*query.split("&"), *fragment.split("&")):
        name, equals, value = pair.partition("=")
        yield from _as_written(value if equals else name)


def _login_secrets(login: str) -> Iterator[str]:
    """The password, or the text alone in its place."""
    user, colon, password = login.removesuffix("@").lstrip("/\\:").partition(":")
    yield from _as_written(password if colon else user)


def _as_written(value: str) -> Iterator[str]:
    yield from (value, unquote(value))


def _spellings(secret: str) -> Iterator[str]:
    """The secret, also without text that may follow or surround it in a list of settings."""
    value = _without_scheme(secret)
    first = value.partition(",")[0]
    yield from (value, first, first.strip("\"'{}[]() "), value.partition(":")[2])


def _keys_in(path: str) -> Iterator[str]:
    for piece in path.split("/"):
        yield from (
            value
            for name, _, value in (part.partition("=") for part in piece.split(";"))
            if value and SECRET_NAME.search(name)
        )
        yield from (found.group() for found in _KEY_LIKE.finditer(piece) if _covered_key(found) == COVER)


def _without_scheme(value: str) -> str:
    scheme, space, rest = value.partition(" ")
    return rest if space and scheme in _HARMLESS else value


def masked_value(value: object) -> str:
    """The masked value of a secret: only variables, and words such as Bearer, are shown."""
    if not isinstance(value, str):
        return COVER
    return _around_variables(value, lambda piece: piece if piece.strip() in _HARMLESS else COVER)


def masked_url(url: str) -> str:
    """The masked URL: scheme, host and path are shown; user info, fragment and the values of the query are
    not."""
    rest, _, _ = url.partition("#")
    rest, question, query = rest.partition("?")
    found = SCHEME.match(rest)
    scheme = found.group() if found else ""
    address = _INNER_LOGIN.sub(f"{COVER}@", _LOGIN.sub(rf"\g<slashes>{COVER}@", rest[len(scheme) :]))
    host, slash, path = address.partition("/")
    if scheme and not _VARIABLE.search(host):
        host = _NO_PORT.sub(COVER, host)
    shown = scheme + _around_variables(host, str) + slash + "/".join(map(_masked_segment, path.split("/")))
    return shown + ("?" + "&".join(map(_masked_pair, query.split("&"))) if question else "")


def masked_words(words: list[str]) -> list[str]:
    """The masked words of a command: the value of an option that names a secret is covered."""
    return [_masked_word(*word_and_preceding) for word_and_preceding in with_preceding(words)]


def masked_text(text: str) -> str:
    """The masked text of a shell command, with its quotes; each word is masked as by `masked_words`."""
    parts = list(shell_words(text))
    covered = iter(masked_words([unquoted(part) for part in parts if not part.isspace()]))
    return "".join(part if part.isspace() else _requoted(part, next(covered)) for part in parts)


def _requoted(written: str, covered: str) -> str:
    """The masked word, with the quotes of the written one."""
    if covered == unquoted(written):
        return written
    quote = written[0] if written[0] in "'\"" else ""
    return f"{quote}{covered}{quote}"


def _masked_word(word: str, before: str, earlier: str) -> str:
    return "".join(_SHOW[kind](text) for kind, text in pieces(word, before, earlier))


def _masked_path(text: str) -> str:
    return "/".join(map(_masked_piece, text.split("/")))


def _masked_pair(pair: str) -> str:
    name, equals, value = pair.partition("=")
    return f"{name}={masked_value(value)}" if equals else masked_value(name)


def _masked_segment(text: str) -> str:
    """A masked part of a path, in which `name=value` may name a secret."""
    return ";".join(
        _masked_pair(part)
        if SECRET_NAME.search(part.partition("=")[0]) and "=" in part
        else _masked_piece(part)
        for part in text.split(";")
    )


def _masked_piece(text: str) -> str:
    """A word without slashes, with everything masked that looks like a key."""
    return _around_variables(text, lambda piece: _KEY_LIKE.sub(_covered_key, piece))


def _covered_key(found: re.Match[str]) -> str:
    """The text with keys covered. Long ordinary words are not keys: a key mixes letters and digits."""
    text = found.group()
    pauses = max(len(run) for run in re.split("[-_]", text))
    mixed = re.search(r"\d", text) is not None and re.search(r"[A-Za-z]", text) is not None
    known = re.match(r"(?:sk|pk|rk|ghp|gho|ghu|ghs|glpat|github_pat|xox|AKIA|eyJ)", text) is not None
    return COVER if mixed and (known or pauses >= 16 or text.count("-") == 4) else text


def _around_variables(text: str, show: Callable[[str], str]) -> str:
    """The text with variables as written and defaults that may be secret masked; `show` converts the text
    between them."""
    pieces = _VARIABLE.split(text)
    return "".join(_variable(piece) if number % 2 else show(piece) for number, piece in enumerate(pieces))


_PLAIN_DEFAULT: Final = re.compile(r"[a-z]{1,12}|\d{1,5}|https?://(?:localhost|127\.0\.0\.1)(?::\d{1,5})?/?")
"""One lower-case word, a small number, or this machine: no credential looks like that."""


def _variable(variable: str) -> str:
    name, has_default, default = variable[2:-1].partition(":-")
    is_plain = not SECRET_NAME.search(name) and _PLAIN_DEFAULT.fullmatch(default) is not None
    return f"${{{name}:-{COVER}}}" if has_default and default and not is_plain else variable


def _masked(field: str, value: Any) -> Any:
    if field in _SHOWN_WHOLE and isinstance(value, str):
        return masked_name(value)
    if field in ("url", "serverUrl", "httpUrl") and isinstance(value, str):
        return masked_url(value)
    if field == "headersHelper" and isinstance(value, str):
        return masked_text(value)
    if isinstance(value, Mapping):
        inner = cast("Mapping[str, Any]", value)
        if _is_covered(field):
            return _with_masked_names({key: masked_value(item) for key, item in inner.items()})
        return _with_masked_names({key: _masked(key, item) for key, item in inner.items()})
    if field in _OBJECTS and value is not None:
        return masked_value(value)
    return _masked_plain(field, value)


def _is_covered(field: str) -> bool:
    """Whether no value in the field is shown: variables and headers in any spelling, and named secrets."""
    name = "".join(filter(str.isalpha, field)).lower()
    return name.endswith(("env", "environment", "headers")) or (
        SECRET_NAME.search(field) is not None and name != "oauth"
    )


def _masked_plain(field: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        if _is_covered(field) or not all(isinstance(item, str) for item in items):
            return [masked_value(item) for item in items]
        return masked_words(cast("list[str]", items))
    if value is None or isinstance(value, bool):
        return value
    if _is_covered(field):
        return masked_value(value)
    return masked_text(value) if isinstance(value, str) else value


_SHOW: Final[Mapping[Kind, Callable[[str], str]]] = {
    "shown": str,
    "secret": masked_value,
    "login": lambda _: f"{COVER}@",
    "url": masked_url,
    "path": _masked_path,
    "command": masked_text,
}
_FIND: Final[Mapping[Kind, Callable[[str], Iterable[str]]]] = {
    "shown": lambda _: (),
    "secret": _spellings,
    "login": _login_secrets,
    "url": _secrets_in_url,
    "path": _keys_in,
    "command": _secrets_in_text,
}
