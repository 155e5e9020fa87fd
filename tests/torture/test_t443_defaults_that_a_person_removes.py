"""T443: a default in a server's form that the person removes is not sent."""

import json
from typing import Any

import pytest

from dragoman import Host
from dragoman.interaction import FormAnswer, FormElicitation, PermissionAnswer
from dragoman.tui.form import FormView
from dragoman.tui.questions import QuestionApp
from dragoman.wire.server.request import ClientRequest
from tests.gateway import Client, Json, gateway_of
from tests.servers.office import Office

pytestmark = [pytest.mark.slow, pytest.mark.requirement("ASK-1")]

FORM: Json = {
    "type": "object",
    "properties": {
        "share_with": {"type": "string", "default": "all"},
        "days": {"type": "integer", "default": 9},
        "rights": {
            "type": "array",
            "items": {"type": "string", "enum": ["read", "delete"]},
            "default": ["delete"],
        },
    },
}
ASK: Json = {"name": "office__ask", "arguments": {}}
ABLE: Json = {"elicitation": {}}


class Asking(Office):
    async def _ask(self, request: ClientRequest, arguments: Json) -> Any:
        params = {"mode": "form", "requestedSchema": FORM, "message": "Share it?"}
        return await request.ask("elicitation/create", params)


class Removing:
    """A person at the screen who removes every default and submits the form."""

    async def allow(self, question: Any) -> PermissionAnswer:
        return PermissionAnswer(True)

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        app = QuestionApp(FormView(question))
        async with app.run_test(size=(80, 40)) as pilot:
            await pilot.pause()
            keys = [*["backspace"] * 3, "tab", "backspace", "tab", "down", "space", "ctrl+s"]
            await pilot.press(*keys)
            await pilot.pause()
        assert app.return_value is not None
        return app.return_value


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_t443_a_default_removed_on_the_screen_is_not_sent(revision: str):
    async with Host({"office": Asking((revision,))}, interaction=Removing()) as host:
        await host.ready(timeout=20)
        outcome = await host.call("mcp__office__ask")
    assert json.loads(outcome.text) == {"action": "accept", "content": {}}


async def test_t443_a_default_left_out_by_a_gateway_client_is_not_added():
    async with gateway_of({"office": Asking(("2025-11-25",))}) as running, Client(running.url) as client:
        needed = (await client.modern("tools/call", ASK, capabilities=ABLE)).last["result"]
        answers = {key: {"action": "accept", "content": {"days": 3}} for key in needed["inputRequests"]}
        again = {**ASK, "requestState": needed["requestState"], "inputResponses": answers}
        reply = await client.modern("tools/call", again, capabilities=ABLE)
        said = reply.last["result"]["content"][0]["text"]
    assert json.loads(said) == {"action": "accept", "content": {"days": 3}}
