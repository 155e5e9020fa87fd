"""Clients are told of the changes they want to be told of, in the way of their era."""

from typing import Any

import pytest

from dragoman.wire.server.request import ClientRequest
from dragoman.wire.server.service import ResourceNotFound
from tests.unit.wire.server.talk import (
    LEGACY,
    Talk,
    complete,
    echo,
    error,
    legacy_client,
    meta,
    notification,
    result,
    service,
)

ID = "io.modelcontextprotocol/subscriptionId"
TOOLS = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Books:
    """Resources that can be subscribed to, except `book:none`."""

    def __init__(self) -> None:
        self.subscribed: list[str] = []

    async def subscribe(self, request: ClientRequest) -> Any:
        uri = request.params["uri"]
        if uri == "book:none":
            raise ResourceNotFound(uri)
        self.subscribed.append(uri)
        return {}

    async def unsubscribe(self, request: ClientRequest) -> Any:
        self.subscribed.remove(request.params["uri"])
        return {}

    def talk(self, **session: Any) -> Talk:
        handlers = {
            "tools/list": echo,
            "prompts/list": echo,
            "resources/list": echo,
            "resources/subscribe": self.subscribe,
            "resources/unsubscribe": self.unsubscribe,
        }
        served = service(handlers, list_changes=frozenset({"tools", "resources"}))
        return Talk(served, legacy_client(**session) if session else None)


async def test_a_legacy_client_is_notified_of_changed_lists_after_its_initialization():
    talk = Books().talk(is_initialized=False)
    talk.connection.list_changed("tools")
    assert talk.sent == []
    talk.tell("notifications/initialized")
    talk.connection.list_changed("tools")
    talk.connection.list_changed("prompts")
    assert talk.sent == [notification(TOOLS)], "changes of prompts are not declared"


async def test_a_legacy_client_is_notified_of_subscribed_resources():
    books = Books()
    talk = books.talk(revision=LEGACY)
    talk.ask("resources/subscribe", 1, uri="book:a")
    talk.ask("resources/subscribe", 3, uri="book:a")
    talk.ask("resources/subscribe", 2, uri="book:none")
    not_found = error(2, -32002, "no resource book:none", data={"uri": "book:none"})
    assert await talk.heard(3) == [result(1), result(3), not_found]
    assert books.subscribed == ["book:a"], "asked for once"
    for uri in ("book:a", "book:a/page/1", "book:b", "book:none"):
        talk.connection.resource_updated(uri)
    assert await talk.heard() == [
        notification(UPDATED, uri="book:a"),
        notification(UPDATED, uri="book:a/page/1"),
    ]
    talk.ask("resources/unsubscribe", uri="book:a")
    talk.ask("resources/unsubscribe", 2, uri="book:b")
    assert await talk.heard(2) == [result(1), result(2)]
    talk.connection.resource_updated("book:a")
    assert (await talk.settled(), books.subscribed) == ([], [])


async def test_the_subscriptions_of_a_client_end_with_its_connection():
    books = Books()
    talk = books.talk(revision=LEGACY)
    talk.ask("resources/subscribe", uri="book:a")
    wanted = {"resourceSubscriptions": ["book:b"]}
    talk.ask("subscriptions/listen", 2, notifications=wanted, **meta())
    await talk.heard(2)
    assert books.subscribed == ["book:a", "book:b"]
    await talk.connection.close()
    assert books.subscribed == []


async def test_a_modern_client_gets_requested_notifications_with_the_id_of_its_request():
    books = Books()
    talk = books.talk()
    wanted = {"promptsListChanged": True, "resourceSubscriptions": ["book:a", "book:none"], "taskIds": []}
    talk.ask("subscriptions/listen", "s", notifications={**wanted, "toolsListChanged": True}, **meta())
    honoured = {"toolsListChanged": True, "resourceSubscriptions": ["book:a"]}
    of_s: dict[str, Any] = {"_meta": {ID: "s"}}
    assert await talk.heard() == [notification(ACKNOWLEDGED, notifications=honoured, **of_s)]

    for kind in ("tools", "prompts", "resources"):
        talk.connection.list_changed(kind)
    talk.connection.resource_updated("book:a/page/1")
    talk.connection.resource_updated("book:b")
    assert talk.sent == [
        notification(TOOLS, **of_s),
        notification(UPDATED, uri="book:a/page/1", **of_s),
    ]


async def test_several_subscriptions_are_distinguished_and_ended_one_by_one():
    talk = Books().talk()
    for request_id in (1, "1"):
        talk.ask("subscriptions/listen", request_id, notifications={"toolsListChanged": True}, **meta())
    await talk.heard(2)
    talk.connection.list_changed("tools")
    assert await talk.heard() == [notification(TOOLS, _meta={ID: 1}), notification(TOOLS, _meta={ID: "1"})]

    talk.tell("notifications/cancelled", requestId=1)
    assert await talk.settled() == [], "a cancelled request has no result"
    talk.connection.list_changed("tools")
    assert await talk.heard() == [notification(TOOLS, _meta={ID: "1"})]

    talk.connection.end_subscriptions()
    (ended,) = await talk.heard()
    meta_of_result = ended["result"]["_meta"]
    assert meta_of_result[ID] == "1"
    assert ended == complete("1", _meta=meta_of_result)
    talk.connection.list_changed("tools")
    assert talk.sent == []


@pytest.mark.parametrize(
    "params", [{}, {"notifications": []}, {"notifications": {"resourceSubscriptions": [1]}}]
)
async def test_a_subscription_that_cannot_be_read_is_invalid(params: dict[str, Any]):
    talk = Books().talk()
    talk.ask("subscriptions/listen", **params, **meta())
    (reply,) = await talk.heard()
    assert reply["error"]["code"] == -32602
