"""T643: a gateway client subscribes to very many resources. Above a limit it is refused; other clients are
not affected."""

from typing import Any

import pytest

from dragoman.gateway import handlers
from tests.gateway import BOB, LEGACY, Client, gateway_of
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-1")

REFUSED = "a session can subscribe to at most 2 resources"


@pytest.fixture(autouse=True)
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert handlers.SUBSCRIPTIONS_LIMIT == 1000
    monkeypatch.setattr(handlers, "SUBSCRIPTIONS_LIMIT", 2)


def office() -> Office:
    made = Office((LEGACY,))
    made.files = {f"file:///{name}": name for name in "abcd"}
    return made


async def asked(client: Client, method: str, name: str) -> Any:
    reply = (await client.legacy(f"resources/{method}", {"uri": f"file:///{name}"})).last
    return reply["error"]["message"] if "error" in reply else reply["result"]


async def test_t643_the_number_of_subscriptions_of_a_client_is_limited():
    async with (
        gateway_of({"office": office()}) as running,
        Client(running.url) as ada,
        Client(running.url, BOB) as bob,
    ):
        await ada.initialize()
        await bob.initialize()
        assert [await asked(ada, "subscribe", name) for name in "abcda"] == [{}, {}, REFUSED, REFUSED, {}]
        assert [await asked(bob, "subscribe", name) for name in "cd"] == [{}, {}]

        assert await asked(ada, "unsubscribe", "a") == {}
        assert [await asked(ada, "subscribe", name) for name in "cd"] == [{}, REFUSED]
