"""URLs that a person must open before a server continues a call (error -32042).

Reads the URLs of the error and shows them to the person one by one. Nothing is fetched. A URL that cannot be
shown in full, or that is not http or https, is not shown.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from dragoman.connections.elicitation import url_question
from dragoman.errors import RemoteError
from dragoman.interaction import ElicitsUrls, UrlElicitation

PAGE_LIMIT: Final = 5


class _Elicitation(Struct):
    url: str
    message: str = ""


class _Data(Struct):
    elicitations: list[_Elicitation]


def pages_of(error: RemoteError) -> tuple[UrlElicitation, ...]:
    """The URLs that an error names; none, if one of them cannot be shown to a person."""
    try:
        named = msgspec.convert(error.remote_data, _Data).elicitations
    except msgspec.ValidationError:
        return ()
    questions = [url_question(error.server or "", page.url, page.message) for page in named[:PAGE_LIMIT]]
    usable = tuple(question for question in questions if question is not None)
    return usable if len(usable) == len(named) else ()


async def elicit_urls(urls: ElicitsUrls | None, error: RemoteError) -> bool:
    """Whether the person has been to every page, so that the call can be made again."""
    questions = pages_of(error)
    if urls is None or not questions:
        return False
    for question in questions:
        try:
            answer = await urls.elicit_url(question)
        except Exception:  # border: a front end's code; without an answer nothing is repeated
            return False
        if answer != "accept":
            return False
    return True
