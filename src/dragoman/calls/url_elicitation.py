"""URLs that a person must open before a server continues (elicitation in URL mode).

Makes the question about a URL, and handles the error -32042, by which a server names URLs to open before a
call is made again. Nothing is fetched. A URL that cannot be shown in full, or that is not https (or http on
this machine), is not shown.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from dragoman.addresses import parse_address
from dragoman.cleaning import cut, visible
from dragoman.connections.server_requests import ID_LIMIT, UrlCompletions
from dragoman.errors import RemoteError, UrlNotOpened
from dragoman.interaction import RelatedCall, UrlElicitation
from dragoman.urls import ServerUrl, is_loopback, parse_page_url
from dragoman.wire.uris import is_usable

if TYPE_CHECKING:
    from dragoman.calls.elicitation import Elicitor

PAGE_LIMIT: Final = 5


class _Elicitation(Struct, rename="camel"):
    url: str
    message: str = ""
    elicitation_id: str = ""


class _Data(Struct):
    elicitations: list[_Elicitation]


def url_question(
    server: str,
    url: str,
    message: str,
    *,
    elicitation_id: str = "",
    calls: tuple[RelatedCall, ...] = (),
) -> UrlElicitation | None:
    """The question about a page; None if its address is not safe on the web, or could not be seen in full."""
    address = parse_page_url(url) if is_usable(url) else None
    if address is None:
        return None
    return UrlElicitation(
        server=server,
        message=visible(message, 4096),
        url=_with_plain_host(url, address),
        host=address.host,
        warnings=tuple(_warnings(address)),
        elicitation_id=cut(elicitation_id, ID_LIMIT),
        calls=calls,
    )


def _with_plain_host(url: str, address: ServerUrl) -> str:
    """The address as it was sent, but a host in an odd spelling (`https://2130706433/`) as it is reached."""
    _, _, rest = url.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if authority.lower().startswith(address.host):
        return url
    return f"{address.origin}{rest[len(authority) :]}"


def _warnings(address: ServerUrl) -> Iterator[str]:
    """What a person should know of a URL before they open it."""
    if any(label.startswith("xn--") for label in address.host.split(".")):
        yield f"The host is written in punycode ({_decoded(address.host)}): it may imitate another name."
    if is_loopback(address):
        yield "The page is on this computer."
    elif parse_address(address.host) is not None:
        yield "The host is an address and not a name."


def _decoded(host: str) -> str:
    try:
        return visible(host.encode("ascii").decode("idna"), 300)
    except UnicodeError:
        return "it cannot be decoded"


def pages_of(error: RemoteError, call: RelatedCall | None = None) -> tuple[UrlElicitation, ...]:
    """The URLs that an error names; none, if one of them cannot be shown to a person."""
    try:
        named = msgspec.convert(error.remote_data, _Data).elicitations
    except msgspec.ValidationError:
        return ()
    calls = () if call is None else (call,)
    server = error.server or ""
    questions = [
        url_question(server, page.url, page.message, elicitation_id=page.elicitation_id, calls=calls)
        for page in named[:PAGE_LIMIT]
    ]
    usable = tuple(question for question in questions if question is not None)
    return usable if len(usable) == len(named) else ()


async def elicit_urls(
    elicitor: Elicitor | None,
    error: RemoteError,
    call: RelatedCall | None = None,
    completions: UrlCompletions | None = None,
) -> bool:
    """Whether every page has been opened and is done with, so that the call can be made again. False if no
    person or hook can be asked; `UrlNotOpened` if one said no."""
    questions = pages_of(error, call)
    if elicitor is None or not questions or "url" not in elicitor.modes(error.server or ""):
        return False
    completions = completions or UrlCompletions()
    with completions.expecting([question.elicitation_id for question in questions]) as complete:
        for question in questions:
            try:
                action = await elicitor.elicit_url(
                    question, until_done=True, is_complete=complete.get(question.elicitation_id)
                )
            except asyncio.CancelledError:
                raise
            except Exception:  # border: a front end's code; without an answer nothing is repeated
                return False
            if action != "accept":
                raise UrlNotOpened(question.server, action)
    return True
