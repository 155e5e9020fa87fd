"""T445: a call that waits for input is continued only with the same rights and at the same path."""

from collections.abc import Sequence

import pytest

from dragoman.gateway.access import KnownCaller
from dragoman.gateway.settings import Rights, View
from dragoman.interaction import Caller
from dragoman.testing import InMemoryServer
from tests.gateway import Client, Json, gateway_of
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-3")
FORMS: Json = {"elicitation": {"form": {}}}
ANSWER: Json = {"action": "accept", "content": {"name": "Ada"}}
FIND: Json = {"name": "find", "arguments": {}}
REFUSAL = "requestState: no such call is waiting for an answer"
VIEWS = {"desk": View(rename={"office__ask": "find"}), "shelf": View(rename={"files__search": "find"})}
RIGHTS = {"all": (Rights(),), "few": (Rights(tools=("office__ask",)),)}


async def identify(authorization: Sequence[str]) -> KnownCaller:
    """Tokens of one caller, with different rights."""
    return KnownCaller(Caller("ada"), RIGHTS[authorization[0].partition(" ")[2]])


async def begun(client: Client) -> Json:
    """The request to send again, with the input response."""
    asked = (await client.modern("tools/call", FIND, capabilities=FORMS)).last["result"]
    answers = dict.fromkeys(asked["inputRequests"], ANSWER)
    return {**FIND, "inputResponses": answers, "requestState": asked["requestState"]}


@pytest.mark.parametrize(("token", "view"), [("all", "shelf"), ("few", "desk")])
async def test_t445_a_call_is_not_continued_at_another_path_or_with_other_rights(token: str, view: str):
    files = InMemoryServer("files")
    files.add_tool("search", lambda _a, _c: "found")
    servers = {"office": Office(("2025-11-25",)), "files": files}
    async with (
        gateway_of(servers, identify=identify, views=VIEWS) as running,
        Client(f"{running.url}/desk", "all") as desk,
        Client(f"{running.url}/{view}", token) as other,
    ):
        again = await begun(desk)
        reply = await other.modern("tools/call", again, capabilities=FORMS)
        assert reply.last["error"]["message"] == REFUSAL
        reply = await desk.modern("tools/call", again, capabilities=FORMS)
        assert "result" in reply.last, "where it began, it goes on"
