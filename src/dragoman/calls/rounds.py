"""Calls that take several rounds: a modern server answers with questions, and the call is sent again with
the answers.

I own: reading the questions, the next round's parameters, and the limit on rounds. Who answers is
`connections/inbound.py`'s. The state a server hands out is returned to it as it came, and read by nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.connections.inbound import Refusal
from dragoman.errors import MalformedReply
from dragoman.wire.codec import Unreadable, decode_as
from dragoman.wire.messages import ABSENT

ROUND_LIMIT: Final = 10
QUESTION_LIMIT: Final = 20
PAUSE_SECONDS: Final = 0.2
"""Before a round that asks nothing: the server only wants to be asked again."""


class Answerer(Protocol):
    async def answer(self, method: str, params: Raw) -> Mapping[str, Any]: ...


class Question(Struct):
    method: str
    params: Raw = ABSENT


class InputRequired(Struct, rename="camel"):
    input_requests: dict[str, Question] = {}
    request_state: str | UnsetType = UNSET


async def next_round(server: str, raw: Raw, answerer: Answerer) -> dict[str, Any]:
    """What the next round carries besides the call itself."""
    try:
        asked = decode_as(InputRequired, raw)
    except Unreadable as problem:
        raise MalformedReply(server, f"its questions cannot be read: {problem.detail}") from None
    if len(asked.input_requests) > QUESTION_LIMIT:
        raise MalformedReply(server, f"it asks more than {QUESTION_LIMIT} questions at once")
    if not asked.input_requests and asked.request_state is UNSET:
        raise MalformedReply(server, "it wants another round and says neither why nor with what")
    carried: dict[str, Any] = {}
    if asked.input_requests:
        carried["inputResponses"] = {
            key: await _answer(server, question, answerer) for key, question in asked.input_requests.items()
        }
    else:
        await asyncio.sleep(PAUSE_SECONDS)
    if asked.request_state is not UNSET:
        carried["requestState"] = asked.request_state
    return carried


async def _answer(server: str, question: Question, answerer: Answerer) -> Mapping[str, Any]:
    try:
        return await answerer.answer(question.method, question.params)
    except Refusal as refusal:
        # There is no way to answer "no" to some questions: the server is not waiting, so the call ends here.
        raise MalformedReply(server, f"input_required, but {refusal.message}") from None
