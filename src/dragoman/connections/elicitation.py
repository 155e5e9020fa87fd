"""Elicitation: the handler for `elicitation/create`, in form mode and in URL mode.

Questions are bounded and cleaned before a person sees them; a form or a URL that cannot be shown safely is
refused. `calls/url_elicitation.py` uses the same rules for URLs that come with an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec import Raw, Struct

from dragoman.cleaning import is_safe, visible
from dragoman.connections.server_requests import Refusal, RequestHandler
from dragoman.interaction import ElicitsForms, ElicitsUrls, FormElicitation, UrlElicitation
from dragoman.protocol import INVALID_PARAMS
from dragoman.urls import ServerUrl, parse_page_url
from dragoman.wire.codec import Unreadable, decode_as
from dragoman.wire.messages import ABSENT
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


def elicitation_handlers(
    server: str, forms: ElicitsForms | None, urls: ElicitsUrls | None
) -> tuple[RequestHandler, ...]:
    """The handler for those modes that can be answered; none if there is no such mode."""
    modes: dict[str, Any] = {mode: {} for mode, by in (("form", forms), ("url", urls)) if by is not None}
    if not modes:
        return ()

    async def answer(params: Raw) -> Mapping[str, Any]:
        asked = _read(params)
        try:
            if asked.mode == "form" and forms is not None:
                return await _elicit_form(server, forms, asked)
            if asked.mode == "url" and urls is not None:
                return await _elicit_url(server, urls, asked)
        except Refusal:
            raise
        except Exception:  # border: a front end's code; the server is not to wait for ever
            return {"action": "cancel"}
        raise Refusal(INVALID_PARAMS, f"this client does not offer the mode {asked.mode[:50]!r}")

    return (RequestHandler("elicitation/create", {"elicitation": modes}, answer),)


def _read(params: Raw) -> ElicitParams:
    if memoryview(params).nbytes > ELICITATION_LIMIT_BYTES:
        raise Refusal(INVALID_PARAMS, f"the elicitation is larger than {ELICITATION_LIMIT_BYTES} bytes")
    try:
        return decode_as(ElicitParams, params if params is not ABSENT else b"{}")
    except Unreadable as error:
        raise Refusal(INVALID_PARAMS, f"the elicitation cannot be read: {error.detail}") from None


async def _elicit_url(server: str, urls: ElicitsUrls, asked: ElicitParams) -> Mapping[str, Any]:
    question = url_question(server, asked.url, asked.message)
    if question is None:
        raise Refusal(INVALID_PARAMS, "the address cannot be shown to a person")
    return {"action": await urls.elicit_url(question)}


async def _elicit_form(server: str, forms: ElicitsForms, asked: ElicitParams) -> Mapping[str, Any]:
    answer = await forms.elicit_form(
        FormElicitation(
            server=server,
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


def url_question(server: str, url: str, message: str) -> UrlElicitation | None:
    """The question about a page; None if its address is not safe on the web, or could not be seen in full."""
    address = parse_page_url(url) if is_usable(url) else None
    if address is None:
        return None
    return UrlElicitation(server=server, message=visible(message, 4096), url=_with_plain_host(url, address))


def _with_plain_host(url: str, address: ServerUrl) -> str:
    """The address as it was sent, but a host in an odd spelling (`https://2130706433/`) as it is reached."""
    _, _, rest = url.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if authority.lower().startswith(address.host):
        return url
    return f"{address.origin}{rest[len(authority) :]}"


def _defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties: Any = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {
        name: cast("dict[str, Any]", part)["default"]
        for name, part in cast("dict[str, Any]", properties).items()
        if isinstance(part, dict) and "default" in part
    }
