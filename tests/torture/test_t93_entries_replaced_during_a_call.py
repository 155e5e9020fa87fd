"""T93: An approval is for one entry. However long a call waits, no other entry receives its arguments."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from dragoman import ConfigError, Host, PermissionAnswer
from dragoman.calls import attempts, recovery
from dragoman.errors import PermissionRefused
from dragoman.interaction import FormAnswer, PermissionQuestion
from dragoman.testing import InMemoryServer
from tests.servers.web import Answer, Ask, Streamable, answers, streamable
from tests.servers.web.given_answers import replace_results
from tests.torture import projects
from tests.torture.conftest import MODERN
from tests.torture.projects import servers

pytestmark = [pytest.mark.slow, pytest.mark.requirement("PRM-1")]

PAGE = {"mode": "url", "elicitationId": "e", "url": "https://pages.example/", "message": "m"}
NOTE = "note://a"
FORM = {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}


Stage = tuple["Host", "Person", Streamable, Streamable]


class Person:
    """Approves one call and refuses all others; `meanwhile` runs while the person is busy with another
    question."""

    def __init__(self) -> None:
        self.asked: list[PermissionQuestion] = []
        self.meanwhile: Callable[[], Any] = lambda: None

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        self.asked.append(question)
        return PermissionAnswer(len(self.asked) == 1)

    async def elicit_url(self, question: object) -> Literal["accept"]:
        await self.meanwhile()
        return "accept"

    async def elicit_form(self, question: object) -> FormAnswer:
        await self.meanwhile()
        return FormAnswer("accept")


@asynccontextmanager
async def two_servers(
    home: Path, **options: Any
) -> AsyncIterator[tuple[Host, Person, Streamable, Streamable]]:
    """A host whose server `x` is the first one; `person.meanwhile` changes the entry of that name to the
    second."""
    person = Person()
    async with streamable(revisions=(MODERN,)) as first, streamable(revisions=(MODERN,)) as second:

        def point_at(server: Streamable) -> None:
            projects.user(home, servers(x={"type": "http", "url": server.url}))

        async def switch() -> None:
            point_at(second)
            await host.reload()
            await host.ready(timeout=20)

        for server in (first, second):
            server.in_memory.contents.add_resource(NOTE, "a note")
        point_at(first)
        async with Host.configured(interaction=person, **options) as host:
            await host.ready(timeout=20)
            person.meanwhile = switch
            yield host, person, first, second


def asks_first(method: str, params: dict[str, Any]) -> Any:
    def call(given: dict[str, Any]) -> dict[str, Any]:
        if "inputResponses" in given:
            return {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}
        return {"resultType": "input_required", "inputRequests": {"p": {"method": method, "params": params}}}

    return call


@pytest.mark.parametrize("wait", ["page before the call", "page in a round", "form in a round"])
async def test_t93_an_entry_changed_while_a_person_answers_needs_a_new_decision(home: Path, wait: str):
    async with two_servers(home) as (host, person, first, second):
        if wait == "page before the call":
            first.on["tools/call"] = answers.error(-32042, "visit first", data={"elicitations": [PAGE]})
        else:
            asked = PAGE if wait == "page in a round" else FORM
            replace_results(first, {"tools/call": asks_first("elicitation/create", asked)})
        outcome = await host.call("mcp__x__ledger", {"key": "secret plan"})

        assert len(first.asked("tools/call")) == 1
        assert second.asked("tools/call") == []
        assert isinstance(outcome.error, PermissionRefused)
        assert [question.tool for question in person.asked] == ["mcp__x__ledger"] * 2


async def test_t93_an_entry_changed_while_a_call_waits_for_a_busy_server_needs_a_new_decision(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    switched, waits = asyncio.Event(), asyncio.Event()

    def react(*about: Any, **more: Any) -> recovery.Step:
        waits.set()
        return recovery.react(*about, **more)

    async def busy(ask: Ask) -> Any:
        # Until the name refers to the second server: the duration of a reload depends on the machine.
        return None if switched.is_set() else await answers.status(429, "busy", retry_after="1")(ask)

    answer: Answer = busy
    monkeypatch.setattr(attempts, "react", react)
    monkeypatch.setattr(recovery, "TABLE", _patient(recovery.TABLE))
    async with two_servers(home) as (host, person, first, second):
        first.on["tools/call"] = answer
        calling = asyncio.create_task(host.call("mcp__x__ledger", {"key": "secret plan"}))
        async with asyncio.timeout(20):
            await waits.wait()
            await person.meanwhile()
            switched.set()
            outcome = await calling

        assert second.asked("tools/call") == []
        assert isinstance(outcome.error, PermissionRefused)
        assert [question.tool for question in person.asked] == ["mcp__x__ledger"] * 2


def _patient(table: tuple[recovery.RecoveryRow, ...]) -> tuple[recovery.RecoveryRow, ...]:
    return tuple(row._replace(attempts=100) if row.reaction == "wait and retry" else row for row in table)


async def test_t93_after_a_new_check_the_call_is_sent_to_the_new_entry_once(home: Path):
    rules = {"allow": ["mcp__x__ledger"]}
    async with two_servers(home, rules=rules) as (host, person, first, second):
        first.on["tools/call"] = answers.error(-32042, "visit first", data={"elicitations": [PAGE]})
        outcome = await host.call("mcp__x__ledger", {"key": "k"})

        assert outcome.text == "1"
        assert (first.ledger.counts["k"], second.ledger.counts["k"]) == (0, 1)
        assert person.asked == []


async def test_t93_a_resource_request_is_checked_again_too(home: Path):
    rules = {"ask": ["read_mcp_resource"]}
    async with two_servers(home, rules=rules) as (host, person, first, second):
        replace_results(first, {"resources/read": asks_first("elicitation/create", FORM)})
        with pytest.raises(PermissionRefused, match="denied by the person"):
            await host.resources.read("x", NOTE)

        assert len(first.asked("resources/read")) == 1
        assert second.asked("resources/read") == []
        assert [question.tool for question in person.asked] == ["read_mcp_resource"] * 2


async def test_t93_an_approval_for_one_agents_server_does_not_apply_to_another_agents_server_of_that_name():
    def server(label: str) -> InMemoryServer:
        made = InMemoryServer("s")
        made.add_tool("run", lambda arguments, _: f"{label} got {arguments}")
        return made

    async with Host({}) as host:
        first = server("A")
        async with host.for_agent([{"scratch": first}]), host.for_agent([{"scratch": first}]):
            with pytest.raises(ConfigError) as raised:
                host.for_agent([{"scratch": server("B")}])
        assert "'scratch' has the name of another agent's, with another entry" in str(raised.value)
        async with host.for_agent([{"scratch": server("B")}]):
            pass
