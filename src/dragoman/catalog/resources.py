"""Resources and templates as servers list them, and the contents of a resource.

Decides which entries of a list are usable; an invalid one is dropped with its reason. Names and descriptions
are cleaned for models. A URI stays unchanged, because it is sent back; one with invisible characters is not
usable. `content/media.py` converts contents for a model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Raw, Struct

from dragoman.catalog.paging import definition_as, lifetime_seconds
from dragoman.catalog.replies import PartialReply
from dragoman.catalog.texts import DESCRIPTION_LIMIT, TITLE_LIMIT, text
from dragoman.cleaning import for_model, one_line
from dragoman.content.blocks import ResourceData as Content
from dragoman.content.json_scan import Members
from dragoman.content.large_blocks import read_any_resource
from dragoman.errors import InvalidArguments
from dragoman.json_values import as_object
from dragoman.names import ServerName
from dragoman.wire.codec import Unreadable
from dragoman.wire.messages import ABSENT
from dragoman.wire.uris import URI_LIMIT, is_usable

if TYPE_CHECKING:  # loaded when the first template is listed
    from uritemplate import URITemplate

TEMPLATE_LIMIT: Final = 2048
VARIABLE_LIMIT: Final = 50
CONTENT_LIMIT: Final = 1000
"""The maximum number of parts of one resource."""

_MAY_BE_MISSING = ("#", ".", "/", ";", "?", "&")
"""Operators of a template whose expression may expand to an empty text, with the URI still valid."""


class Resource(Struct, frozen=True, kw_only=True):
    """A resource as its server lists it."""

    server: ServerName
    uri: str
    """The URI as its server spells it."""
    name: str
    title: str | None = None
    description: str = ""
    mime_type: str | None = None
    """The MIME type that its server declares."""
    size: int | None = None
    """In bytes, as its server declares."""
    annotations: Mapping[str, Any] = {}
    meta: Mapping[str, Any] = {}


class ResourceTemplate(Struct, frozen=True, kw_only=True, dict=True):
    """A URI template (RFC 6570) for a family of resources."""

    server: ServerName
    uri_template: str
    name: str
    title: str | None = None
    description: str = ""
    mime_type: str | None = None
    annotations: Mapping[str, Any] = {}
    meta: Mapping[str, Any] = {}

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order of the template."""
        return tuple(self._parsed.variable_names)

    def expand(self, values: Mapping[str, str | Sequence[str]]) -> str:
        """The expanded URI. Raises `InvalidArguments` with the missing or unknown variables."""
        needed = {
            name
            for variable in self._parsed.variables
            if variable.operator.value not in _MAY_BE_MISSING
            for name in variable.variable_names
        }
        problems = [f"it needs {name!r}" for name in self.variables if name in needed and name not in values]
        problems += [f"it has no variable {name!r}" for name in values if name not in self.variables]
        problems += [f"{name!r} is not text" for name, value in values.items() if not _is_text(value)]
        uri = "" if problems else self._parsed.expand({name: _value(value) for name, value in values.items()})
        if len(uri) > URI_LIMIT:
            problems.append(f"the URI would be longer than {URI_LIMIT} characters")
        if problems:
            raise InvalidArguments(self.server, self.uri_template, tuple(problems))
        return uri

    def matches(self, uri: str) -> bool:
        """Whether the template can be expanded to this URI. Variables of simple expressions (`{name}`)
        contain no `/`, `?` or `#`; all others match any text."""
        return self._pattern.fullmatch(uri) is not None

    @cached_property
    def _parsed(self) -> URITemplate:
        return _parse(self.uri_template)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return _pattern_of(self.uri_template)


_EXPRESSION: Final = re.compile(r"((?:\{[^}]+\})+)")
"""One expression of a template, or several without text between them."""


def _pattern_of(template: str) -> re.Pattern[str]:
    """A pattern for URIs that the template can be expanded to.

    The template is the server's. Each expression but the last one is matched together with the text that
    follows it in an atomic group, so that the time is linear in the number of expressions.
    """
    first, *others = _EXPRESSION.split(template)
    pairs = [(_gap(others[place]), re.escape(others[place + 1])) for place in range(0, len(others), 2)]
    groups = [f"(?>{gap}?{text})" for gap, text in pairs[:-1]]
    return re.compile("".join([re.escape(first), *groups, *("".join(pair) for pair in pairs[-1:])]), re.S)


def _gap(expressions: str) -> str:
    starts = [each[0] for each in expressions[1:-1].split("}{")]
    is_simple = not any(start in _MAY_BE_MISSING or start == "+" for start in starts)
    may_be_empty = all(start in _MAY_BE_MISSING for start in starts)
    return ("[^/?#]" if is_simple else ".") + ("*" if may_be_empty else "+")


def _is_text(value: Any) -> bool:
    parts = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else [value]
    # A lone surrogate, which Python allows, cannot be in a URI.
    return all(isinstance(part, str) and not _SURROGATE.search(part) for part in parts)


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def _value(value: str | Sequence[str]) -> str | list[str]:
    return value if isinstance(value, str) else list(value)


class ResourceContents(Struct, frozen=True, kw_only=True):
    """The contents of a resource, unchanged: any number of parts."""

    server: ServerName
    uri: str
    contents: tuple[Content, ...]
    problems: tuple[str, ...] = ()
    """Parts that could not be read, and why."""

    @property
    def text(self) -> str:
        """The text of all parts; untrusted, like everything from a server."""
        return "\n".join(part.text for part in self.contents if part.text is not None)


class _Listed(Struct, rename={"mime_type": "mimeType", "meta": "_meta", "uri_template": "uriTemplate"}):
    """A listed item, read tolerantly: an invalid member that is not needed counts as missing."""

    uri: Any = None
    uri_template: Any = None
    name: Any = None
    title: Any = None
    description: Any = None
    mime_type: Any = None
    size: Any = None
    annotations: Any = None
    meta: Any = None


def read_resource(server: ServerName, raw: Raw) -> Resource:
    """A resource of a list, or `Unreadable` with the reason why it cannot be used."""
    listed = definition_as(_Listed, raw)
    uri = _usable(listed.uri, "address", URI_LIMIT)
    size = listed.size
    return Resource(
        server=server,
        uri=uri,
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
        **_described(listed, uri),
    )


def read_template(server: ServerName, raw: Raw) -> ResourceTemplate:
    listed = definition_as(_Listed, raw)
    spelled = _usable(listed.uri_template, "template", TEMPLATE_LIMIT)
    _parse(spelled)
    return ResourceTemplate(server=server, uri_template=spelled, **_described(listed, spelled))


def _described(listed: _Listed, otherwise: str) -> dict[str, Any]:
    title = text(listed.title, TITLE_LIMIT)
    mime_type = text(listed.mime_type, TITLE_LIMIT)
    return {
        "name": text(listed.name, TITLE_LIMIT) or for_model(otherwise, TITLE_LIMIT),
        "title": title or None,
        "description": text(listed.description, DESCRIPTION_LIMIT),
        "mime_type": mime_type or None,
        "annotations": as_object(listed.annotations),
        "meta": as_object(listed.meta),
    }


def _usable(value: Any, what: str, limit: int) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Unreadable(f"it has no {what}")
    if len(value) > limit:
        raise Unreadable(f"its {what} is longer than {limit} characters")
    if not is_usable(value):
        raise Unreadable(f"its {what} has invisible or invalid characters")
    return value


def _parse(template: str) -> URITemplate:
    from uritemplate import URITemplate

    try:
        parsed = URITemplate(template)
    except Exception as error:  # border: what the library raises for an invalid template
        raise Unreadable(f"its template cannot be read: {one_line(str(error), 200)}") from None
    names = list(parsed.variable_names)
    if len(parsed.variables) > VARIABLE_LIMIT or len(names) > VARIABLE_LIMIT:
        raise Unreadable(f"its template has more than {VARIABLE_LIMIT} variables")
    if not all(name and name.isprintable() and " " not in name and "{" not in name for name in names):
        raise Unreadable("its template has a variable without a valid name")
    return parsed


class _ReadResult(Members):
    contents: Raw = ABSENT
    resultType: Raw = ABSENT
    ttlMs: Raw = ABSENT
    cacheScope: Raw = ABSENT


class ReadReply(Struct, frozen=True):
    """A reply to `resources/read`."""

    contents: tuple[Content, ...]
    problems: tuple[str, ...]
    ttl_seconds: float | None
    size_bytes: int
    is_public: bool = False
    """Whether its server declares that it is the same for all users."""


def read_contents(raw: Raw) -> tuple[str, ReadReply]:
    """The kind of result, and the result; a part that cannot be read is left out alone."""
    reply = PartialReply(raw, _ReadResult)
    parts: list[Content] = []
    problems: list[str] = []
    for number, part in enumerate(reply.array("contents"), 1):
        if number > CONTENT_LIMIT:
            problems.append(f"more than {CONTENT_LIMIT} parts: the rest is left out")
            break
        try:
            parts.append(_part(part))
        except Unreadable as error:
            problems.append(f"part {number} is left out: {error.detail}")
    if reply.is_cut:
        problems.append("it has too many values: the rest is left out")
    ttl_ms = reply.scalar("ttlMs")
    ttl = None if ttl_ms is None else lifetime_seconds(ttl_ms)
    is_public = reply.scalar("cacheScope") == "public"
    return reply.kind, ReadReply(tuple(parts), tuple(problems), ttl, memoryview(raw).nbytes, is_public)


def _part(raw: Raw) -> Content:
    part = read_any_resource(raw)
    if part.text is None and part.blob is None:
        raise Unreadable("it holds neither text nor data")
    return part


def as_listed(thing: Resource | ResourceTemplate) -> dict[str, Any]:
    """The item as JSON for models and programs; missing members are left out."""
    address = {"uri": thing.uri} if isinstance(thing, Resource) else {"uriTemplate": thing.uri_template}
    document: dict[str, Any] = {
        "server": thing.server,
        **address,
        "name": thing.name,
        "title": thing.title,
        "description": thing.description or None,
        "mimeType": thing.mime_type,
        "size": thing.size if isinstance(thing, Resource) else None,
    }
    return {key: value for key, value in document.items() if value is not None}
