"""T115: a server's form whose labels steer a terminal, or whose names and values hide something."""

import json
from typing import Any

import msgspec
import pytest

from dragoman.interaction import FormAnswer, FormElicitation
from dragoman.protocol import INVALID_PARAMS
from tests.unit.fakes import reply_of, requests_answered_by

HIDDEN_CHARACTERS = "Amount\x1b[2K\u202e\u200b"
ESCAPED = "Amount\\x1b[2K\\u202e\\u200b"


class Person:
    def __init__(self) -> None:
        self.asked: list[FormElicitation] = []

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        self.asked.append(question)
        return FormAnswer("accept", {"n": "a"})


async def asked(schema: dict[str, Any]) -> tuple[list[FormElicitation], dict[str, Any]]:
    person = Person()
    params = msgspec.Raw(json.dumps({"message": "?", "requestedSchema": schema}).encode())
    reply = await reply_of(requests_answered_by(person), 1, "elicitation/create", params)
    return person.asked, json.loads(reply)


def form(**field: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"n": {"type": "string", **field}}}


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (form(title=HIDDEN_CHARACTERS), form(title=ESCAPED)),
        (form(description=HIDDEN_CHARACTERS), form(description=ESCAPED)),
        (form(enum=["a"], enumNames=[HIDDEN_CHARACTERS]), form(enum=["a"], enumNames=[ESCAPED])),
        (
            form(oneOf=[{"const": "a", "title": HIDDEN_CHARACTERS}]),
            form(oneOf=[{"const": "a", "title": ESCAPED}]),
        ),
        ({**form(), "description": HIDDEN_CHARACTERS}, {**form(), "description": ESCAPED}),
    ],
    ids=["title", "description", "names of choices", "titles of choices", "the form's own"],
)
async def test_t115_labels_of_a_form_are_cleaned(sent: dict[str, Any], shown: dict[str, Any]):
    questions, reply = await asked(sent)

    assert [question.schema for question in questions] == [shown]
    assert reply["result"] == {"action": "accept", "content": {"n": "a"}}


@pytest.mark.parametrize(
    "sent",
    [
        form(enum=["a", HIDDEN_CHARACTERS]),
        form(oneOf=[{"const": HIDDEN_CHARACTERS, "title": "a"}]),
        form(default=HIDDEN_CHARACTERS),
        form(**{HIDDEN_CHARACTERS: 1}),
        {"type": "object", "properties": {HIDDEN_CHARACTERS: {"type": "string"}}},
    ],
    ids=["a choice", "a constant", "a default", "a keyword", "a name"],
)
async def test_t115_a_form_with_hidden_characters_in_names_or_values_is_not_shown(sent: dict[str, Any]):
    questions, reply = await asked(sent)

    assert questions == []
    assert reply["error"]["code"] == INVALID_PARAMS


async def test_t115_letters_of_all_languages_and_line_breaks_are_accepted():
    sent = form(title="数量 📦\nزیاد", enum=["größer", "数"], default="größer")

    questions, _ = await asked(sent)

    assert [question.schema for question in questions] == [sent]
