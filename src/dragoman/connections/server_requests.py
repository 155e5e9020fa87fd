"""Requests that servers may send to the host, the capabilities declared for them, and the answers.

The same table serves requests of the legacy era and `input_required` results of the modern era. A request
whose capability was not declared is refused, and no person is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Final, cast

from msgspec import Raw, Struct

from dragoman.cleaning import is_safe, visible
from dragoman.config.urls import ServerUrl, parse_url
from dragoman.errors import ConfigError
from dragoman.interaction import ElicitsForms, ElicitsUrls, FormElicitation, UrlElicitation
from dragoman.protocol import INVALID_PARAMS, METHOD_NOT_FOUND
from dragoman.wire.codec import Unreadable, decode_as, encode_error, encode_result
from dragoman.wire.messages import ABSENT, MessageId
from dragoman.wire.uris import is_usable


class ElicitParams(Struct, rename="camel"):
    message: str
    requested_schema: dict[str, Any] = {}
    mode: str = "form"
    url: str = ""


ELICITATION_LIMIT_BYTES: Final = 128 * 1024
"""No person would read a larger form, and cleaning it would block the event loop."""
LABEL_LIMIT: Final = 4096
_LABELS: Final = frozenset({"title", "description", "enumNames"})
"""Fields of a form's schema that are only shown."""


class Refusal(Exception):
    """The question is not answered; `code` and the text say why."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ServerRequests:
    def __init__(
        self, server: str, forms: ElicitsForms | None = None, pages: ElicitsUrls | None = None
    ) -> None:
        self._server = server
        self._forms = forms
        self._pages = pages

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What is declared to servers."""
        modes = {"form": self._forms, "url": self._pages}
        offered: dict[str, Any] = {mode: {} for mode, somebody in modes.items() if somebody is not None}
        return {"elicitation": offered} if offered else {}

    def needs_nobody(self, method: str) -> bool:
        """Whether the answer to this request is at hand."""
        return method != "elicitation/create" or (self._forms is None and self._pages is None)

    def reply_at_once(self, request_id: MessageId, method: str) -> bytes:
        """The answer to a request for which no person is needed."""
        if method == "ping":
            return encode_result(request_id, {})
        return encode_error(request_id, METHOD_NOT_FOUND, _not_offered(method))

    async def reply(self, request_id: MessageId, method: str, params: Raw) -> bytes:
        """The message that answers a request."""
        if self.needs_nobody(method):
            return self.reply_at_once(request_id, method)
        try:
            return encode_result(request_id, await self.answer(method, params))
        except Refusal as refusal:
            return encode_error(request_id, refusal.code, refusal.message)

    async def answer(self, method: str, params: Raw) -> Mapping[str, Any]:
        """The result of a request that has to be answered, or `Refusal`."""
        if self.needs_nobody(method):
            raise Refusal(METHOD_NOT_FOUND, _not_offered(method))
        if memoryview(params).nbytes > ELICITATION_LIMIT_BYTES:
            raise Refusal(INVALID_PARAMS, f"the elicitation is larger than {ELICITATION_LIMIT_BYTES} bytes")
        try:
            asked = decode_as(ElicitParams, params if params is not ABSENT else b"{}")
        except Unreadable as error:
            raise Refusal(INVALID_PARAMS, f"the elicitation cannot be read: {error.detail}") from None
        try:
            if asked.mode == "form" and self._forms is not None:
                return await self._fill(self._forms, asked)
            if asked.mode == "url" and self._pages is not None:
                return await self._visit(self._pages, asked)
        except Refusal:
            raise
        except Exception:  # border: a front end's code; the server is not to wait for ever
            return {"action": "cancel"}
        raise Refusal(INVALID_PARAMS, f"this client does not offer the mode {asked.mode[:50]!r}")

    async def _visit(self, pages: ElicitsUrls, asked: ElicitParams) -> Mapping[str, Any]:
        question = page_question(self._server, asked.url, asked.message)
        if question is None:
            raise Refusal(INVALID_PARAMS, "the address cannot be shown to a person")
        return {"action": await pages.elicit_url(question)}

    async def _fill(self, forms: ElicitsForms, asked: ElicitParams) -> Mapping[str, Any]:
        answer = await forms.elicit_form(
            FormElicitation(
                server=self._server,
                message=visible(asked.message, 4096),
                schema=_shown_schema(asked.requested_schema),
            )
        )
        if answer.action != "accept":
            return {"action": answer.action}
        return {"action": "accept", "content": {**_defaults(asked.requested_schema), **answer.content}}


def _shown_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a form as a person may be shown it. Labels are cleaned; names and values are sent back as
    they are, so a form that hides something in one of them is refused."""
    try:
        return _shown("", schema)
    except RecursionError:
        raise Refusal(INVALID_PARAMS, "the form is nested too deeply") from None


def _shown(field: str, part: Any) -> Any:
    if isinstance(part, str):
        if field not in _LABELS and not is_safe(part):
            raise Refusal(INVALID_PARAMS, "the form has characters that cannot be shown to a person")
        return visible(part, LABEL_LIMIT) if field in _LABELS else part
    if isinstance(part, list):
        return [_shown(field, item) for item in cast("list[Any]", part)]
    if isinstance(part, Mapping):
        members = cast("Mapping[str, Any]", part)
        return {_shown("", name): _shown(name, inner) for name, inner in members.items()}
    return part


def page_question(server: str, url: str, message: str) -> UrlElicitation | None:
    """The question about a page; None if its address is not safe on the web, or could not be seen in full."""
    if not is_usable(url) or not _PLAIN.fullmatch(url):
        return None
    try:
        address = parse_url(url)  # refuses a user or password, and what two programs read differently
    except ConfigError:
        return None
    if address.scheme != "https" and not (address.scheme == "http" and _is_here(address.host)):
        return None
    return UrlElicitation(server=server, message=visible(message, 4096), url=_with_plain_host(url, address))


def _with_plain_host(url: str, address: ServerUrl) -> str:
    """The address as it was sent, but a host in an odd spelling (`https://2130706433/`) as it is reached."""
    _, _, rest = url.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if authority.lower().startswith(address.host):
        return url
    return f"{address.origin}{rest[len(authority) :]}"


_PLAIN: Final = re.compile(r"[A-Za-z0-9!#%&()*+,./:;=?@\[\]_~-]+")
"""What addresses are made of: ASCII without spaces, quotes, `$`, backslashes, backticks, or anything else
with which a shell would begin something new inside quotes."""


def _is_here(host: str) -> bool:
    """Whether it is this machine, so that no one else can read the traffic."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False  # a name, whatever it begins with


def _not_offered(method: str) -> str:
    return f"this client does not offer {method[:200]}"


def _defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties: Any = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {
        name: cast("dict[str, Any]", part)["default"]
        for name, part in cast("dict[str, Any]", properties).items()
        if isinstance(part, dict) and "default" in part
    }
