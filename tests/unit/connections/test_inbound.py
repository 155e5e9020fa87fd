"""What a server that asks is answered."""

import json

import pytest

from dragoman.connections.inbound import answer


@pytest.mark.parametrize("request_id", ["x", 7, 0, 1.5, None, True])
def test_ping_is_answered_with_the_id_it_came_with(request_id: str | int | float | bool | None):
    reply = json.loads(answer(request_id, "ping"))

    assert reply == {"jsonrpc": "2.0", "id": request_id, "result": {}}
    assert type(reply["id"]) is type(request_id)


@pytest.mark.parametrize(
    "method", ["roots/list", "sampling/createMessage", "elicitation/create", "tools/call", "", "pong"]
)
def test_what_was_not_offered_is_refused_as_unknown(method: str):
    reply = json.loads(answer(7, method))

    assert reply["id"] == 7
    assert reply["error"]["code"] == -32601
    assert method in reply["error"]["message"]


def test_the_refusal_of_an_endless_method_is_short():
    assert len(answer(7, "x" * 1_000_000)) < 1000
