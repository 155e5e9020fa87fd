"""The words of a command, split into pieces that are shown, covered or examined further. Pure, linear time.

`pieces` is the only place that decides where a credential can be in a word. `masking` uses it both to
cover the credential when an entry is shown and to find it for redaction, so that both always agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal

Kind = Literal["shown", "secret", "login", "url", "path", "command"]
"""`login` is `user:password@`; `path` is shown except for keys; `command` is a text for a shell."""
Piece = tuple[Kind, str]

_NAMES: Final = (
    r"token|key|secret|pass|pwd|auth|credential|bearer|cookie"
    r"|(?<![A-Za-z])(?:pw|pat|jwt|sig)(?![A-Za-z])|(?-i:(?<=[a-z])(?:Pw|Pat|Jwt|Sig|PW|PAT|JWT)(?![a-z]))"
)
SECRET_NAME: Final = re.compile(_NAMES, re.IGNORECASE)
"""Names that indicate a secret. The short ones must be a whole word of a name: `--pat` and `ghPat`, but not
`--path`."""
SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.:-]{0,40}://")
BROKEN_SCHEME: Final = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]{0,40}(?:\s{0,3}:\s{0,3}[/\\]|[/\\]{2})|:?[/\\])[/\\:]{0,9}"
)
"""A scheme with too many or too few slashes, before a login: `https:/`, `https//`, `//`."""

_OPTION: Final = re.compile(r"(--?[A-Za-z0-9][^=\s]*)=(?=.)", re.DOTALL)
_LOGIN_FLAG: Final = re.compile(r"-[A-Za-z]{0,4}[uU]|--(?:user|proxy-user|username|login|basic|creds?)")
_LOGIN: Final = re.compile(r"((?!https?://)[^:/\s]*:)(?!\d+\Z)(.+)", re.DOTALL)
"""A name and a password as `curl -u` takes them. Two numbers are ids of a user and a group."""
_JOINED_LOGIN: Final = re.compile(r"(-[uU][^:/\s=]*:)(?!\d+\Z)(.+)", re.DOTALL)
_HEADER_FLAG: Final = re.compile(r"-[A-Za-z]{0,4}H|--(?:[A-Za-z]{1,20}-){0,3}headers?")
_HEADER: Final = re.compile(r"(/[A-Za-z0-9_-]+(?=:[^/])|[A-Za-z0-9_.-]+):\s*")
"""The name of a header, of a setting (`db.password:`) or of an option of Windows (`/password:`)."""
_JOINED_HEADER: Final = re.compile(r"(-[A-Za-z]{0,4}?H[A-Za-z0-9_-]+:\s*)(.+)", re.DOTALL)
_HAS_OPTION: Final = re.compile(r"\s-|\A-\S*\s")
"""Several words, one of them an option: a text for a shell, as behind `sh -c`."""
_USER_AT_HOST: Final = re.compile(r"[^/@:\s]{1,100}:[^/@\s]{1,200}@(?=[A-Za-z0-9.-])")
_HEADER_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*")
_PAIR_FLAG: Final = re.compile(
    r"--?(?:headers?|set(?:-[a-z]+)?|env|var|variable|param(?:eter)?|property|define|option|opt|config|conf)"
)
"""Options that in some programs take a name and a value as two words."""
_OPTION_WITH_PAIR: Final = re.compile(r"--[A-Za-z][\w.-]*|-[A-Za-z]|set|put|add|write")
_EXACT_SECRET: Final = re.compile(
    r"(?:.*[\W_])?(?:api_?key|access_?key|password|passwd|passphrase|pwd|pass|token|secret|credentials?|pat|jwt)",
    re.IGNORECASE,
)
"""A name that ends in a word for a secret: `db.password`, but not `token-server`. After it, and after any
option before it, the next word is its value: `--kv password VALUE`."""
_LOGIN_PAIR_FLAG: Final = re.compile(r"--(?:user|username|login|basic|auth|creds?|credentials?|account)")
_LOGIN_NAME: Final = re.compile(r"(?!\d+\Z)[\w.@+-]{1,64}")
_PLACE: Final = re.compile(r"(?:\.{0,2}|~)/|[A-Za-z][A-Za-z0-9+.-]*://")
_JOINED_PASSWORD: Final = re.compile(
    r"(-p)(?![a-z]{0,3}\Z|\d+(?:[:./-]\d+)*\Z|[\d.]*:\d+|(?:\.{0,2}|~)/|:)"
    r"(?!(?:ackages?|age|arallel|arams?|ass\w*|atch|aths?|attern|eriod|ersist|id|ipe|lain|lugins?|olicy|ort|ost|refix"
    r"|reserve|reset|retty|rint0?|rintf|riority|roc\w*|rod\w*|rofile|roject|rompt|ropert\w*|rotocol|roxy|rune|ublish"
    r"|ull|ush|ython\d*)\Z)(\S+)",
)
"""A password joined to its option, as `mysql` and `sshpass` take it. Numbers, ports, folders, up to three
lower-case letters (several options in one word) and usual names of options are not passwords."""
_TAKES_PASSWORD: Final = re.compile(r"(?:.*/)?sshpass")
_SECRET_KEY: Final = rf"(?=[\w.-]{{0,80}}?(?:{_NAMES}))[\w.-]{{1,80}}"
_PAIR: Final = re.compile(
    rf"""(?P<q>\\{{0,3}}["']){_SECRET_KEY}(?P=q)\s{{0,9}}:\s{{0,9}}"""
    r"""(?:(?P=q)(?P<quoted>.*?)(?:(?<!\\)(?P=q)|\Z)|(?P<plain>[^\s,}\]\["'{]+))"""
    rf"""|(?<=[{{,\s])(?<!\$\{{){_SECRET_KEY}[:=]\s{{0,9}}(?P<bare>[^\s,}}"']+)""",
    re.DOTALL | re.IGNORECASE,
)
"""A name that looks secret and its value, as JSON writes them, also inside a JSON text."""
_NAMED: Final = re.compile(
    rf"""(?<![\w.-]){_SECRET_KEY}\s{{0,9}}[:=]\s{{0,9}}(?:(?:bearer|basic|token|apikey)\s{{1,9}})?"""
    r"""(?:"([^"]*)"|'([^']*)'|([^\s,;"']+))""",
    re.IGNORECASE,
)
"""A name that looks secret and its value, which for a header begins with a scheme (`Bearer …`)."""
_LATER_SECRET: Final = re.compile(
    rf"""(?<![\w.-]){_SECRET_KEY}["'\]]?\s{{0,9}}=\s{{0,9}}(?P<value>.+)""", re.DOTALL | re.IGNORECASE
)
"""A secret that is not the first of several settings: `a=b,db.password=…`. What follows may belong to it."""
_URL: Final = re.compile(
    rf"""(?:{SCHEME.pattern}|(?<![\w.])(?:[A-Za-z][A-Za-z0-9+.-]{{0,40}}:)?/{{1,2}}(?={_USER_AT_HOST.pattern}))"""
    r"""[^\s"'\\]*"""
)
"""A URL inside a text; with fewer slashes only before a login."""
_PARAMETER: Final = re.compile(rf"""[?&]{_SECRET_KEY}=(?P<value>[^&\s"']+)""", re.IGNORECASE)
_SHELL_WORD: Final = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+|\s+|.""", re.DOTALL)
_QUOTED: Final = re.compile(r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)|['"\\]""", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def shell_words(text: str) -> Iterator[str]:
    """The words of a shell command as written, and the white space between them. A JSON text is one word."""
    if text.lstrip()[:1] in ("{", "["):
        return iter((text,))
    return (found.group() for found in _SHELL_WORD.finditer(text))


def unquoted(word: str) -> str:
    """The word without the quotes that a shell removes; JSON keeps its quotes."""
    return word if word.lstrip()[:1] in ("{", "[") else _QUOTED.sub(_inner, word)


def _inner(found: re.Match[str]) -> str:
    single, double, escaped = found.groups()
    if double is not None:
        return _ESCAPED.sub(r"\1", double)
    return single or escaped or ""


def named_values(text: str) -> Iterator[str]:
    """The values behind secret names in a longer text: `password = …`, `password='…'`, `API_KEY=… server`."""
    for found in _NAMED.finditer(text):
        yield next(value for value in found.groups() if value is not None)


_CONTAINER_PROGRAM: Final = re.compile(r"(?:.*[/\\])?(?:docker|podman)(?:\.exe)?")
_CONTAINER_SWITCH: Final = re.compile(
    r"-[itdPq]+|--(?:interactive|tty|detach|rm|init|privileged|read-only|publish-all|quiet)"
)
_CONTAINER_OPTION: Final = re.compile(
    r"-[evpuwlm]|--(?:env|env-file|volume|mount|publish|name|network|net|user|workdir|entrypoint|add-host"
    r"|platform|pull|label|memory|cpus|hostname|cap-add|cap-drop|security-opt|dns)"
)
"""Options of `docker run` and `podman run` that take a value in the next word."""


def with_preceding(words: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Each word with the two that precede it, the nearest first.

    After docker's `-e NAME`, which takes the value from the environment, follows no value.
    """
    images = {number + 2 for number in _container_options(words) if words[number] in ("-e", "--env")}
    for number, word in enumerate(words):
        earlier = words[number - 2] if number > 1 and number not in images else ""
        yield word, words[number - 1] if number else "", earlier


def _container_options(words: Sequence[str]) -> Iterator[int]:
    """The places of the options of `docker run` that take a value. Ends at the image, or at an option that is
    not known: what follows may belong to another program."""
    if not words or not _CONTAINER_PROGRAM.fullmatch(words[0]) or list(words[1:2]) != ["run"]:
        return
    number = 2
    while number < len(words):
        if _CONTAINER_OPTION.fullmatch(words[number]):
            yield number
            number += 2
        elif _CONTAINER_SWITCH.fullmatch(words[number]) or _OPTION.match(words[number]):
            number += 1
        else:
            return


def pieces(word: str, before: str = "", earlier: str = "") -> Iterator[Piece]:
    """The word in pieces, which together are the word; `before` and `earlier`: the word that precedes it, and
    the one before that."""
    if _is_second_of_pair(word, before, earlier):
        yield ("secret", word)
    elif option := _OPTION.match(word):
        yield ("path", option.group(1))
        yield ("shown", "=")
        yield from _value(word[option.end() :], option.group(1))
    elif joined := (
        _JOINED_LOGIN.fullmatch(word) or _JOINED_HEADER.fullmatch(word) or _JOINED_PASSWORD.fullmatch(word)
    ):
        yield ("shown", joined.group(1))
        yield ("secret", joined.group(2))
    else:
        yield from _value(word, before)


def _is_second_of_pair(word: str, before: str, earlier: str) -> bool:
    """Whether the word is the value of a header, or of a secret, whose name is a separate word: `--header
    NAME VALUE`, `--set db.password VALUE`; or the password of a login: `--user NAME VALUE`."""
    if joined := _OPTION.match(before):  # `--header=NAME VALUE`
        earlier, before = joined.group(1), before[joined.end() :]
    if word.startswith("-") or "=" in before:
        return False
    if _HEADER_FLAG.fullmatch(earlier) and _HEADER_NAME.fullmatch(before):
        # `-H` is also the host of many programs.
        return earlier.startswith("--") or "-" in before or SECRET_NAME.search(before) is not None
    if _PAIR_FLAG.fullmatch(earlier) and SECRET_NAME.search(before):
        return True
    if _OPTION_WITH_PAIR.fullmatch(earlier) and _EXACT_SECRET.fullmatch(before):
        return True
    if _TAKES_PASSWORD.fullmatch(earlier) and before == "-p":
        return True
    is_login = _LOGIN_PAIR_FLAG.fullmatch(earlier) and _LOGIN_NAME.fullmatch(before)
    return is_login is not None and _PLACE.match(word) is None


def _value(word: str, before: str) -> Iterator[Piece]:
    """Splits a word that is not an option, or the value of an option."""
    header = _HEADER.match(word)
    if _LOGIN_FLAG.fullmatch(before) and (login := _LOGIN.fullmatch(word)):
        yield ("shown", login.group(1))
        yield ("secret", login.group(2))
    elif _HEADER_FLAG.fullmatch(before) or (header and _names_secret(header.group(1))):
        end = header.end() if header else 0
        yield ("shown", word[:end])
        yield ("secret", word[end:])
    elif before.startswith("-") and "=" not in before and SECRET_NAME.search(before):
        yield ("secret", word)
    elif word.lstrip()[:1] in ("{", "["):
        yield from _around(_PAIR, word)
    elif _HAS_OPTION.search(word) and not SCHEME.match(word):
        yield ("command", word)
    else:
        yield from _settings(word)


def _names_secret(name: str) -> bool:
    """Whether the name before a colon is that of a secret. One with dots may be a host before its port."""
    return (_EXACT_SECRET.fullmatch(name) if "." in name else SECRET_NAME.search(name)) is not None


def _settings(word: str) -> Iterator[Piece]:
    """Splits a URL, settings `name=value` separated by semicolons, or a plain word."""
    if SCHEME.match(word) and not word.lower().startswith("jdbc:"):
        yield ("url", word)
        return
    for number, setting in enumerate(word.split(";")):
        if number:
            yield ("shown", ";")
        yield from _setting(setting)


def _setting(setting: str) -> Iterator[Piece]:
    name, equals, value = setting.partition("=")
    later = _LATER_SECRET.search(setting)
    if SCHEME.match(setting):
        yield ("url", setting)
    elif later and not SECRET_NAME.search(name):
        yield from _plain(setting[: later.start("value")])
        yield ("secret", later["value"])
    elif equals and SECRET_NAME.search(name):
        yield from _plain(name)
        yield ("shown", "=")
        yield ("secret", value)
    elif equals:
        yield from _plain(name)
        yield ("shown", "=")
        header = _HEADER.match(value)
        if header and _names_secret(header.group(1)):  # `http.extraHeader=Authorization: …`
            yield ("shown", header.group())
            yield ("secret", value[header.end() :])
        else:
            yield from _plain(value)
    else:
        yield from _plain(setting)


def _plain(text: str) -> Iterator[Piece]:
    if SCHEME.match(text):
        yield ("url", text)
        return
    start = broken.end() if (broken := BROKEN_SCHEME.match(text)) else 0
    if login := _USER_AT_HOST.match(text, start):
        yield ("shown", text[:start])
        yield ("login", login.group())
        text = text[login.end() :]
    yield from _around(_PAIR, text)


def _around(pattern: re.Pattern[str], text: str) -> Iterator[Piece]:
    """Splits at the matches of the pattern; the text around them is examined for URLs and then for
    parameters."""
    end = 0
    for found in pattern.finditer(text):
        first, last = found.span(found.lastgroup or 0)
        yield from _rest(pattern, text[end:first])
        yield ("url" if pattern is _URL else "secret", text[first:last])
        end = last
    yield from _rest(pattern, text[end:])


def _rest(pattern: re.Pattern[str], text: str) -> Iterator[Piece]:
    if pattern is _PARAMETER:
        yield ("path", text)
    else:
        yield from _around(_URL if pattern is _PAIR else _PARAMETER, text)
