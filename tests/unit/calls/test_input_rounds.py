"""Calls that take several rounds: what a server asks, and what the next round carries."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from dragoman.calls import input_rounds
from dragoman.calls.input_rounds import QUESTION_LIMIT, next_round
from dragoman.errors import InputUnavailable, MalformedReply
from dragoman.interaction import FormAnswer, FormElicitation
from tests.unit.fakes import Nobody, requests_answered_by


class Answers:
    """Answers with a number, and remembers what was asked, in order."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, bytes]] = []

    async def answer(self, method: str, params: Raw, context: Any) -> Mapping[str, Any]:
        self.asked.append((method, bytes(params)))
        return {"n": len(self.asked)}


async def carried(answerer: Any, **asked: Any) -> dict[str, Any]:
    result = Raw(json.dumps({"resultType": "input_required", **asked}).encode())
    return json.loads(msgspec.json.encode(await next_round("box", result, answerer)))


def ascii_start(text: str) -> str:
    return ascii(text)[:40]


QUESTION = {"method": "elicitation/create", "params": {"message": "go on?"}}


async def test_each_question_is_answered_under_its_own_key():
    answers = Answers()
    found = await carried(answers, inputRequests={"a": QUESTION, "b": {"method": "roots/list"}})

    assert found == {"inputResponses": {"a": {"n": 1}, "b": {"n": 2}}}
    assert [method for method, _ in answers.asked] == ["elicitation/create", "roots/list"]
    assert json.loads(answers.asked[0][1]) == {"message": "go on?"}


@pytest.mark.parametrize("state", ["", "s", '\u2028 ü \\ " \x00', "x" * 100_000], ids=len)
async def test_the_request_state_is_sent_back_unchanged(state: str):
    found = await carried(Answers(), inputRequests={"a": QUESTION}, requestState=state)

    assert found["requestState"] == state


async def test_the_request_state_is_sent_back_byte_for_byte():
    spelled = rb'"\u00e9 \/ \ud83d\ude00"'
    asked = b'{"inputRequests":{"a":{"method":"m"}},"requestState":%b}' % spelled

    assert bytes((await next_round("box", Raw(asked), Answers()))["requestState"]) == spelled


async def test_without_a_request_state_none_is_sent():
    assert "requestState" not in await carried(Answers(), inputRequests={"a": QUESTION})


async def test_a_request_state_without_questions_is_sent_back_after_a_pause(monkeypatch: pytest.MonkeyPatch):
    paused: list[float] = []

    async def pause(seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr(input_rounds.asyncio, "sleep", pause)
    answers = Answers()

    assert await carried(answers, requestState="s") == {"requestState": "s"}
    assert (paused, answers.asked) == ([input_rounds.PAUSE_SECONDS], [])


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({}, id="neither questions nor state"),
        pytest.param({"inputRequests": {}}, id="no question"),
        pytest.param({"inputRequests": []}, id="a list of questions"),
        pytest.param({"inputRequests": {"a": "elicitation/create"}}, id="a question that is no object"),
        pytest.param({"inputRequests": {"a": {}}}, id="a question without a method"),
        pytest.param({"inputRequests": {"a": {"method": 7}}}, id="a method that is a number"),
        pytest.param({"inputRequests": None}, id="null for questions"),
        pytest.param({"requestState": 7}, id="a number for a state"),
        pytest.param({"requestState": {"k": 1}}, id="an object for a state"),
        pytest.param({"inputRequests": {str(n): QUESTION for n in range(QUESTION_LIMIT + 1)}}, id="too many"),
    ],
)
async def test_questions_that_cannot_be_decoded_are_malformed_and_not_shown(asked: dict[str, Any]):
    answers = Answers()
    with pytest.raises(MalformedReply):
        await carried(answers, **asked)

    assert answers.asked == []


async def test_questions_up_to_the_limit_are_answered():
    found = await carried(Answers(), inputRequests={str(n): QUESTION for n in range(QUESTION_LIMIT)})

    assert len(found["inputResponses"]) == QUESTION_LIMIT


@pytest.mark.parametrize(
    "method", ["elicitation/create", "sampling/createMessage", "x" * 100_000, "\x1b[2J"], ids=ascii_start
)
async def test_a_question_without_an_answer_ends_the_call(method: str):
    with pytest.raises(InputUnavailable, match="does not offer") as caught:
        await carried(Nobody(), inputRequests={"a": {"method": method}})

    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 3000


async def test_a_declined_question_is_sent_as_an_answer():
    class Declines:
        async def elicit_form(self, question: FormElicitation) -> FormAnswer:
            return FormAnswer("decline")

    found = await carried(requests_answered_by(Declines()), inputRequests={"a": QUESTION})

    assert found == {"inputResponses": {"a": {"action": "decline"}}}


async def test_a_cancelled_call_cancels_its_question():
    class Ponders:
        def __init__(self) -> None:
            self.begun = asyncio.Event()
            self.was_cancelled = False

        async def answer(self, method: str, params: Raw, context: Any) -> Mapping[str, Any]:
            self.begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.was_cancelled = True
                raise
            return {}

    ponders = Ponders()
    task = asyncio.create_task(carried(ponders, inputRequests={"a": QUESTION}))
    await ponders.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ponders.was_cancelled
