"""T185: everything that a server reports about its tasks is bounded: ids, states, intervals, input
requests, results."""

import asyncio
import json
from typing import Any

import pytest

from dragoman import FormAnswer, FormElicitation, PermissionAnswer
from dragoman.calls.task_steps import INPUT_LIMIT, LEAST_POLL_SECONDS
from dragoman.calls.task_store import TaskStore
from dragoman.errors import CallTimeout, InputUnavailable, MalformedReply, MessageTooLarge
from dragoman.hooks.declared import hook
from tests.servers import stdio_server
from tests.torture.bystander_host import MEGABYTE, at_once, until

pytestmark = pytest.mark.requirement("CAL-8")


@pytest.fixture(params=["legacy", "modern"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def stored() -> list[Any]:
    return TaskStore(lambda: 0.0).all()


async def is_cancelled(a: Any) -> None:
    async with asyncio.timeout(10):
        while "tasks/cancel" not in await counts(a):
            await asyncio.sleep(0.01)


async def counts(a: Any) -> dict[str, int]:
    return json.loads(await a.call("counts"))


@pytest.mark.parametrize(
    "created",
    [
        {"taskId": ""},
        {"taskId": "a\nb"},
        {"taskId": "\x1b]0;owned\x07"},
        {"taskId": {"repeat": ["x", 5000]}},
        {"taskId": 7},
        {"taskId": None},
        {"status": "finished"},
        {"status": {"repeat": ["working", 1000]}},
    ],
    ids=str,
)
async def test_an_invalid_task_fails_only_its_call(bystander_host, kind: str, created: dict[str, Any]):
    async with bystander_host(stdio_server("wrong_tasks.py", kind)) as a:
        async with at_once():
            with pytest.raises(MalformedReply) as caught:
                await a.call("run", created=created, states=[{}])
        assert "\x1b" not in str(caught.value)
        assert len(str(caught.value)) < 1000
        assert stored() == []
        assert "tasks/get" not in await counts(a)


@pytest.mark.parametrize(
    "state",
    [
        {"taskId": "another"},
        {"status": "finished"},
        {"statusMessage": ["x"]},
        {"status": "completed", "result": 5},
        {"status": "input_required", "inputRequests": [1]},
    ],
    ids=str,
)
async def test_an_invalid_state_ends_the_call_of_a_modern_server(bystander_host, state: dict[str, Any]):
    async with bystander_host(stdio_server("wrong_tasks.py", "modern")) as a, at_once(5):
        with pytest.raises(MalformedReply):
            await a.call("run", created={"pollIntervalMs": 0}, states=[state])


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "input_required"])
async def test_a_task_that_is_created_in_another_state_is_polled(bystander_host, kind: str, status: str):
    result = {"content": [{"type": "text", "text": "done"}]}
    states = [{"status": "completed", "result": result}]
    async with bystander_host(stdio_server("wrong_tasks.py", kind)) as a, at_once(5):
        assert await a.call("run", created={"status": status}, states=states, result=result) == "done"


async def test_a_task_with_an_unreadable_state_is_cancelled(bystander_host, kind: str):
    async with bystander_host(stdio_server("wrong_tasks.py", kind)) as a:
        with pytest.raises(MalformedReply):
            await a.call("run", created={"pollInterval": 0, "pollIntervalMs": 0}, states=[{"taskId": "x"}])
        await is_cancelled(a)
        await until(lambda: stored() == [])


async def test_an_endless_task_ends_with_the_time_limit_and_is_polled_at_a_limited_rate(
    bystander_host, kind: str
):
    async with bystander_host(stdio_server("wrong_tasks.py", kind)) as a:
        nothing = {"pollInterval": 0, "pollIntervalMs": 0}
        with pytest.raises(CallTimeout):
            await a.call("run", created=nothing, states=[nothing], seconds=1.5)
        await is_cancelled(a)
        found = await counts(a)
        assert 2 <= found["tasks/get"] <= 1.5 / LEAST_POLL_SECONDS + 2
        assert found["tasks/cancel"] == 1
        await until(lambda: stored() == [])


async def test_a_poll_interval_of_thirty_years_delays_only_the_poll(bystander_host, kind: str):
    async with bystander_host(stdio_server("wrong_tasks.py", kind)) as a:
        late = {"pollInterval": 10**12, "pollIntervalMs": 10**12}
        async with at_once(4):
            with pytest.raises(CallTimeout):
                await a.call("run", created=late, states=[late], seconds=1)


async def test_an_unanswered_task_request_ends_with_the_time_limit(bystander_host, kind: str):
    async with bystander_host(stdio_server("wrong_tasks.py", kind)) as a, at_once(4):
        with pytest.raises(CallTimeout):
            await a.call("run", states=[None], seconds=1)


async def test_a_status_message_of_megabytes_is_shortened(bystander_host, kind: str):
    seen: list[Any] = []
    async with bystander_host(stdio_server("wrong_tasks.py", kind)) as a:
        long = {"statusMessage": {"repeat": ["x", 4 * MEGABYTE]}, "pollInterval": 0, "pollIntervalMs": 0}
        with pytest.raises(CallTimeout):
            await a.outcome("run", states=[long], on_progress=seen.append, seconds=1)
        assert len(seen[0].message) < 3000


async def test_a_result_beyond_the_limit_is_refused(bystander_host, kind: str):
    settings = {"DRAGOMAN_MESSAGE_LIMIT_BYTES": 2 * MEGABYTE}
    text = [{"type": "text", "text": "x"}]
    result = {"content": text, "_meta": {"pad": {"repeat": ["x", 3 * MEGABYTE]}}}
    async with bystander_host(stdio_server("wrong_tasks.py", kind), settings=settings) as a, at_once(10):
        with pytest.raises(MessageTooLarge):
            await a.call("run", states=[{"status": "completed", "result": result}], result=result)


async def test_a_large_result_is_read_without_blocking(bystander_host, kind: str):
    result = {"content": [], "_meta": {"pad": {"repeat": ["x", 8 * MEGABYTE]}}}
    async with bystander_host(stdio_server("wrong_tasks.py", kind)) as a:
        outcome = await a.outcome("run", states=[{"status": "completed", "result": result}], result=result)
        assert not outcome.is_error


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
FORM = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": SCHEMA}}


def asking(keys: list[str]) -> dict[str, Any]:
    requests = dict.fromkeys(keys, FORM)
    return {"status": "input_required", "inputRequests": requests, "pollIntervalMs": 0}


def answers(asked: list[Any]) -> Any:
    def answer(given: Any) -> Any:
        asked.append(given)
        said = {"hookEventName": "Elicitation", "action": "accept", "content": {"a": "b"}}
        return {"hookSpecificOutput": said}

    return hook(answer, "Elicitation")


async def test_a_repeated_input_request_is_shown_once(bystander_host):
    asked: list[Any] = []
    async with bystander_host(stdio_server("wrong_tasks.py", "modern"), hooks=[answers(asked)]) as a:
        with pytest.raises(CallTimeout):
            await a.call("run", states=[asking(["k"])], seconds=1.5)
        assert len(asked) == 1
        assert (await counts(a))["tasks/update"] == 1


async def test_endless_new_input_requests_are_limited(bystander_host):
    asked: list[Any] = []
    states = [asking([f"k{number}-{part}" for part in range(20)]) for number in range(10)]
    async with bystander_host(stdio_server("wrong_tasks.py", "modern"), hooks=[answers(asked)]) as a:
        async with at_once(10):
            with pytest.raises(MalformedReply, match=f"more than {INPUT_LIMIT} times"):
                await a.call("run", created={"pollIntervalMs": 0}, states=states)
        assert len(asked) <= INPUT_LIMIT


async def test_too_many_simultaneous_input_requests_are_not_shown(bystander_host):
    asked: list[Any] = []
    states = [asking([str(number) for number in range(1000)])]
    async with bystander_host(stdio_server("wrong_tasks.py", "modern"), hooks=[answers(asked)]) as a:
        async with at_once(5):
            with pytest.raises(MalformedReply, match="input requests at once"):
                await a.call("run", created={"pollIntervalMs": 0}, states=states)
        assert asked == []


async def test_an_undeclared_kind_of_input_ends_the_task(bystander_host):
    states = [
        {"status": "input_required", "inputRequests": {"k": {"method": "sampling/createMessage"}}},
    ]
    async with bystander_host(stdio_server("wrong_tasks.py", "modern")) as a:
        outcome = await a.outcome("run", created={"pollIntervalMs": 0}, states=states)
        assert isinstance(outcome.error, InputUnavailable)
        await is_cancelled(a)


async def test_a_task_with_a_ttl_of_a_million_years_is_reported_without_a_time(bystander_host, kind: str):
    long = {"ttl": 1e300, "ttlMs": 1e300, "pollInterval": 0, "pollIntervalMs": 0}
    async with bystander_host(stdio_server("wrong_tasks.py", kind)) as a:
        outcome = await a.host.call(
            "mcp__hostile__run", {"created": long, "states": [long]}, background_after_seconds=0
        )
        assert [task.id for task in await a.host.tasks.list()] == [outcome.task]
        assert [task.expires for task in await a.host.tasks.list()] == [None]


class Absent:
    """A person who is shown forms and answers none."""

    def __init__(self) -> None:
        self.shown = self.gone = 0

    async def allow(self, question: Any) -> PermissionAnswer:
        return PermissionAnswer(True)

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        self.shown += 1
        try:
            return await asyncio.Future()
        finally:
            self.gone += 1


DONE = {"status": "completed", "result": {"content": [{"type": "text", "text": "done"}]}}
ENDS: dict[str, list[Any]] = {
    "completed": [DONE],
    "working again": [{"status": "working", "pollIntervalMs": 0}, DONE],
    "asking for something else": [{"status": "input_required", "inputRequests": {}}, DONE],
}


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS.keys())
async def test_an_input_request_that_a_task_no_longer_needs_is_withdrawn(bystander_host, ends: list[Any]):
    person = Absent()
    asks = {"status": "input_required", "inputRequests": {"a": FORM}, "pollIntervalMs": 100}
    async with bystander_host(stdio_server("wrong_tasks.py", "modern"), interaction=person) as a:
        async with at_once():
            assert await a.call("run", created={"pollIntervalMs": 0}, states=[asks, asks, *ends]) == "done"
        assert (person.shown, person.gone) == (1, 1)
