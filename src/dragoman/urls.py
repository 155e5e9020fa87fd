"""Parses the URLs of servers, and the patterns that policy compares them with. Pure.

This is the only parser of server URLs. Policy decides on its result and transports connect to exactly its
canonical form, so the two cannot mean different hosts. It is strict: what two parsers could read differently
(user info, backslashes, whitespace, an escaped host) is refused. The canonical form parses to itself, here
and in yarl.

A pattern is `scheme://host[:port][/path][?query]`, with `*` for any run of characters: `*.example.com` is
every name below example.com and not example.com itself; `*` alone is any host. A pattern without a path, or
with `/` only, means every path; without a query, every query. A host of digits, dots and stars (`10.*`) means
addresses and never a name such as `10.evil.com`. An error never contains the text, which may contain secrets.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final
from urllib.parse import quote, unquote

from msgspec import Struct

from dragoman.addresses import parse_address
from dragoman.errors import ConfigError
from dragoman.wildcards import Pieces, fits

DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}

LIMIT_CHARACTERS: Final = 8192
"""Longest URL, as written and in canonical form."""

# Replaces a pattern's star while the rest is made canonical, so that `%2A` stays a plain character.
# No text can hold it: control characters are refused first.
_STAR: Final = "\0"

_SHAPE: Final = re.compile(r"([^:/?#]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?")
_AUTHORITY: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::(.*))?")
_PORT: Final = re.compile(r"[0-9*]{1,5}")
_DOTS: Final = re.compile("[.\u3002\uff0e\uff61]")  # IDNA reads the ideographic ones as full stops
_LABEL: Final = re.compile(r"[a-z0-9_*-]{1,63}")
_NUMBER: Final = re.compile(r"0x[0-9a-f]*|[0-9]+")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNIT: Final = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~-]")
_SLASHES: Final = re.compile("/|%2F|%5C")

# Characters that mean the same escaped or not, and those that do not. yarl draws the same lines; a
# difference would let it send another path than the one that was judged.
_ALIKE_IN_PATH: Final = frozenset("!$&'()*,;=:@")
_KEPT_IN_PATH: Final = frozenset("/+" + _STAR)
_ALIKE_IN_QUERY: Final = frozenset("!$'()*,:@/?")
_KEPT_IN_QUERY: Final = frozenset("+&;=" + _STAR)
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class ServerUrl(Struct, frozen=True):
    """The canonical URL that is connected to. Made by `parse_url` only."""

    scheme: str
    host: str
    """ASCII, lower case; IPv6 in brackets."""
    port: int
    path: str
    query: str

    @property
    def origin(self) -> str:
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"

    def __str__(self) -> str:
        return f"{self.origin}{self.path}" + (f"?{self.query}" if self.query else "")

    def __repr__(self) -> str:
        """The URL without path and query, which may contain secrets."""
        return f"<ServerUrl {self.origin}>"


def is_loopback(url: ServerUrl) -> bool:
    """Whether the host is this machine, so that no one else can read the traffic."""
    address = parse_address(url.host)
    if address is None:
        return url.host == "localhost" or url.host.endswith(".localhost")
    return address.is_loopback


PLAIN_URL: Final = re.compile(r"[A-Za-z0-9!#%&()*+,./:;=?@\[\]_~-]+")
"""The characters of URLs that people may be sent to: ASCII without spaces, quotes, `$`, backslashes,
backticks, or anything else that a shell interprets inside quotes."""


def parse_page_url(text: str) -> ServerUrl | None:
    """The URL of a page that a person may be sent to: https, or http on this machine; None if it is none."""
    if not PLAIN_URL.fullmatch(text):
        return None
    try:
        url = parse_url(text)  # refuses a user or password, and what two programs read differently
    except ConfigError:
        return None
    return url if url.scheme == "https" or (url.scheme == "http" and is_loopback(url)) else None


class UrlPattern(Struct, frozen=True):
    """A pattern for URLs. `None` matches any value of a part; for the port see `matches`."""

    scheme: Pieces
    host: Pieces
    port: Pieces | None
    path: Pieces | None
    query: Pieces | None
    only_addresses: bool
    """Whether the host is a pattern for IPv4 addresses."""


def parse_url(text: str) -> ServerUrl:
    """The address meant by `text`, or a `ConfigError` that says what is wrong with it."""
    scheme, host, port, path, query = _split(text)
    if scheme not in DEFAULT_PORTS:
        raise _wrong("has a scheme other than http, https, ws and wss")
    host = _canonical_host(host)
    if "*" in host:
        raise _wrong("has a host with a star")
    number = DEFAULT_PORTS[scheme] if port is None else _port_number(port)
    url = ServerUrl(scheme, host, number, _canonical_path(path), _canonical_query(query or ""))
    if len(str(url)) > LIMIT_CHARACTERS:
        raise _too_long()
    return url


def parse_pattern(text: str) -> UrlPattern:
    """The pattern meant by `text`, or a `ConfigError`. `*` alone is every address."""
    scheme, host, port, path, query = _split("*://*:*" if text == "*" else text)
    pieces = tuple(scheme.split("*"))
    if not any(fits(pieces, known) for known in DEFAULT_PORTS):
        raise _wrong("has a scheme other than http, https, ws, wss and *")
    host = _canonical_host(host)
    path = _canonical_path(path.replace("*", _STAR))
    return UrlPattern(
        scheme=pieces,
        host=tuple(host.split("*")),
        port=None if port is None else _port_pieces(port),
        path=None if path == "/" else tuple(path.split(_STAR)),
        query=tuple(_canonical_query(query.replace("*", _STAR)).split(_STAR)) if query else None,
        only_addresses=re.fullmatch(r"[0-9.*]*[0-9][0-9.*]*", host) is not None,
    )


def matches(pattern: UrlPattern, url: ServerUrl, *, any_port: bool) -> bool:
    """Whether the URL matches the pattern.

    Without a port, a pattern means the scheme's default one; with `any_port` it means every port. A
    rule that forbids uses `any_port`; otherwise an unusual port would bypass it.
    """
    return (
        fits(pattern.scheme, url.scheme)
        and fits(pattern.host, url.host)
        and (not pattern.only_addresses or _is_ipv4(url.host))
        and _port_fits(pattern.port, url, any_port)
        and (pattern.path is None or _path_fits(pattern.path, url.path, loosely=any_port))
        and (pattern.query is None or fits(pattern.query, url.query))
    )


def _path_fits(pieces: Pieces, path: str, *, loosely: bool) -> bool:
    """Whether the path matches. `loosely`, for a rule that forbids: also in the forms to which servers may
    decode or normalize the path."""
    if fits(pieces, path):
        return True
    if not loosely:
        return False
    folded = tuple(piece.casefold() for piece in pieces)
    plain = re.sub(r"/{2,}", "/", re.sub(r";[^/]*", "", unquote(unquote(path)).replace("\\", "/"))).casefold()
    return any(
        fits(folded, spelling) for spelling in (plain, plain.rstrip("/") or "/", f"{plain.rstrip('/')}/")
    )


def _port_fits(port: Pieces | None, url: ServerUrl, any_port: bool) -> bool:
    if port is None:
        return any_port or url.port == DEFAULT_PORTS[url.scheme]
    return fits(port, str(url.port))


def _wrong(reason: str, hint: str = "Write scheme://host[:port]/path.") -> ConfigError:
    return ConfigError(f"the URL {reason}", hint=hint)


def _too_long() -> ConfigError:
    return _wrong(f"is longer than {LIMIT_CHARACTERS} characters", "Shorten it.")


def _split(text: str) -> tuple[str, str, str | None, str, str | None]:
    """Scheme, host, port, path and query as written; the fragment, which is never sent, is dropped."""
    if len(text) > LIMIT_CHARACTERS:
        raise _too_long()
    if " " in text or not text.isprintable():
        raise _wrong("holds whitespace or an invisible character", "Escape it: a space is %20.")
    if "\\" in text:
        raise _wrong("holds a backslash", "Write / or %5C.")
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise _wrong("does not begin with a scheme and ://")
    scheme, authority, path, query = shape.groups()
    return scheme.lower(), *_split_authority(authority), path, query


def _split_authority(authority: str) -> tuple[str, str | None]:
    if "@" in authority:
        raise _wrong("holds a user name or password", "Send credentials in `headers`.")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise _wrong("has brackets that are not around an IPv6 address")
    host, port = parts.groups()
    if not host:
        raise _wrong("has no host")
    if "%" in host:
        raise _wrong("has a % in its host", "Write the host plainly; a zone id is not supported.")
    return host, port


def _port_number(port: str) -> int:
    if not _PORT.fullmatch(port) or "*" in port or not 0 < int(port) < 65536:
        raise _wrong("has a port that is not a number from 1 to 65535")
    return int(port)


def _port_pieces(port: str) -> Pieces:
    if "*" not in port:
        return (str(_port_number(port)),)
    if not _PORT.fullmatch(port):
        raise _wrong("has a port that is not digits and stars")
    return tuple(port.split("*"))


def _canonical_host(host: str) -> str:
    """The host in the form that is resolved; the stars of a pattern are kept."""
    if host.startswith("["):
        return _canonical_ipv6(host[1:-1])
    labels = [_canonical_label(label) for label in _DOTS.split(host)]
    if len(labels) > 1 and not labels[-1]:
        labels.pop()  # the trailing dot of a fully qualified name
    if not all(map(_LABEL.fullmatch, labels)):
        raise _wrong("has a host that is not a name of letters, digits, hyphens and dots")
    if "*" not in host and _NUMBER.fullmatch(labels[-1]):
        return _canonical_ipv4(labels)
    host = ".".join(labels)
    if len(host) > 253:
        raise _wrong("has a host longer than 253 characters")
    return host


def _canonical_label(label: str) -> str:
    label = label.lower() if label.isascii() else label
    if label.isascii() and ("*" in label or not label.startswith("xn--")):
        return label
    import idna

    # Also for ASCII that claims to be punycode: a label that decodes to nothing valid is read
    # differently by every library.
    try:
        return idna.encode(label, uts46=True).decode("ascii")
    except UnicodeError:
        raise _wrong("has a host that is not a valid international name") from None


def _canonical_ipv4(labels: list[str]) -> str:
    """Old spellings of an address (`127.1`, `0x7f000001`), read as the system's resolver reads them."""
    if len(labels) > 4:
        raise _wrong("has a host that ends in a number and is not an IPv4 address")
    *leading, last = map(_ipv4_number, labels)
    if max(leading, default=0) > 255 or last >= 256 ** (4 - len(leading)):
        raise _wrong("has an IPv4 address out of range")
    return str(IPv4Address(sum(part << 8 * (3 - place) for place, part in enumerate(leading)) + last))


def _ipv4_number(label: str) -> int:
    if not _NUMBER.fullmatch(label):
        raise _wrong("has a host that ends in a number and is not an IPv4 address")
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    try:
        return int(label, 8 if label.startswith("0") else 10)
    except ValueError:
        raise _wrong("has an IPv4 address with an octal number that is none") from None


def _is_ipv4(host: str) -> bool:
    return host.rpartition(".")[2].isdigit()  # no name ends in a number, see _canonical_host


def _canonical_ipv6(text: str) -> str:
    if text == "*":
        return "[*]"
    try:
        address = IPv6Address(text)
    except AddressValueError:
        raise _wrong("has brackets that are not around an IPv6 address") from None
    # A mapped address is reached by IPv4. (How ipaddress spells it depends on the Python version.)
    mapped = address.ipv4_mapped
    return f"[{address.compressed}]" if mapped is None else str(mapped)


def _canonical_path(path: str) -> str:
    path = _without_dot_segments(_requoted(path or "/", _ALIKE_IN_PATH, _KEPT_IN_PATH))
    # Many servers decode %2F, or cut at `;`, before they look for dot segments.
    if any(part.partition(";")[0] in (".", "..") for part in _SLASHES.split(path)):
        raise _wrong("has a path with encoded dot segments", "Write the path that is meant.")
    return path


def _canonical_query(query: str) -> str:
    return _requoted(query, _ALIKE_IN_QUERY, _KEPT_IN_QUERY)


def _requoted(text: str, alike: frozenset[str], kept: frozenset[str]) -> str:
    """The text percent-encoded only where needed, with upper-case hexadecimal digits."""
    if _BAD_ESCAPE.search(text):
        raise _wrong("holds a % that does not begin an escape", "Write %25 for a plain %.")

    def unit(found: re.Match[str]) -> str:
        written = found.group()
        if len(written) == 1:
            return written if written in alike or written in kept else quote(written, safe="")
        character = chr(int(written[1:], 16))
        return character if character in _UNRESERVED or character in alike else written.upper()

    return _UNIT.sub(unit, text)


def _without_dot_segments(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)
