"""Tasks in both wire forms: an ordinary call, progress, input, cancelling, restarts, the background."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from dragoman import Host
from dragoman.calls.task_store import TaskStore
from dragoman.errors import CallTimeout, PermissionRefused, TaskCancelled, TaskNotFound
from dragoman.events import CallFinished, CallProgressed, CallStarted
from dragoman.hooks.declared import hook
from dragoman.testing import InMemoryServer
from dragoman.wire.server.request import ClientRequest
from dragoman.wire.server.service import Service
from tests.integration.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.requirement("CAL-8")]

SERVER = Path(__file__).parents[1] / "servers" / "runs_tasks.py"
LIMIT = 30.0


@pytest.fixture(params=["legacy", "modern"])
def era(request: pytest.FixtureRequest) -> str:
    return request.param


def entry(era: str, home: Path, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-S", "-E", str(SERVER), era, str(home / "tasks")], **more}


def host_of(era: str, home: Path, **options: Any) -> Host:
    options.setdefault("permission_mode", "bypassPermissions")
    return Host({"s": entry(era, home)}, **options)


async def notes(host: Host) -> list[list[str]]:
    """The requests about calls and tasks that the server got."""
    return json.loads((await host.call("mcp__s__notes")).text)


def stored() -> list[str]:
    return [task.tool for task in TaskStore(lambda: 0.0).all()]


async def test_a_call_that_becomes_a_task_has_an_ordinary_outcome(era: str, home: Path):
    async with host_of(era, home) as host:
        await host.ready()
        outcome = await host.call("mcp__s__work", {"text": "ready"}, timeout_seconds=LIMIT)
        assert (outcome.text, outcome.is_error, outcome.task) == ("ready", False, None)
        assert outcome.meta is not None
        assert outcome.meta["from"] == "task"
        methods = [method for method, _ in await notes(host)]
        assert methods.count("tools/call") == 1
        assert methods.count("tasks/get") >= 2
        assert stored() == []


async def test_states_of_a_task_are_progress(era: str, home: Path):
    seen: list[Any] = []
    async with host_of(era, home) as host:
        await host.ready()
        events = host.events()
        await host.call("mcp__s__work", {"steps": 3}, timeout_seconds=LIMIT, on_progress=seen.append)
        kinds = []
        async for event in events:
            kinds.append(type(event))
            if isinstance(event, CallFinished):
                break
    assert [each.message for each in seen][:2] == ["2 left", "1 left"]
    assert [each.progress for each in seen] == sorted({each.progress for each in seen})
    assert kinds[0] is CallStarted
    assert CallProgressed in kinds


async def test_progress_of_a_legacy_task_continues_after_its_creation(home: Path):
    seen: list[Any] = []
    async with host_of("legacy", home) as host:
        await host.ready()
        arguments = {"steps": 3, "counts": True}
        await host.call("mcp__s__work", arguments, timeout_seconds=LIMIT, on_progress=seen.append)
        await host.call("mcp__s__notes")
        assert (1, 3) in [(each.progress, each.total) for each in seen]
        assert [each.message for each in seen if each.message][:1] == ["2 left"]
        session = host._servers["s"].session()
        assert session is not None
        assert session._peer._progress == {}, "nothing is kept of a call that has ended"


ADA = {
    "hookSpecificOutput": {
        "hookEventName": "Elicitation",
        "action": "accept",
        "content": {"name": "Ada"},
    }
}


async def test_an_input_request_of_a_task_is_answered_once(era: str, home: Path):
    asked: list[Any] = []

    def answer(given: Any) -> Any:
        asked.append(given)
        return ADA

    async with host_of(era, home, hooks=[hook(answer, "Elicitation")]) as host:
        await host.ready()
        outcome = await host.call("mcp__s__ask", timeout_seconds=LIMIT)
        assert outcome.text == "hello Ada"
        assert len(asked) == 1
        updates = [note for note in await notes(host) if note[0] == "tasks/update"]
        assert len(updates) == (1 if era == "modern" else 0)


async def test_the_error_of_a_failed_task_is_the_outcome(era: str, home: Path):
    async with host_of(era, home) as host:
        await host.ready()
        outcome = await host.call("mcp__s__fail", timeout_seconds=LIMIT)
        assert outcome.is_error
        assert "it did not work" in outcome.text
        assert stored() == []


async def test_a_task_that_its_server_cancels_is_a_named_error(era: str, home: Path):
    async with host_of(era, home) as host:
        await host.ready()
        outcome = await host.call("mcp__s__give_up", timeout_seconds=LIMIT)
        assert isinstance(outcome.error, TaskCancelled)
        assert outcome.error.code == "task-cancelled"


async def test_cancelling_a_call_cancels_its_task(era: str, home: Path):
    async with host_of(era, home) as host:
        await host.ready()
        calling = asyncio.create_task(host.call("mcp__s__endless"))
        await until(lambda: stored() == ["mcp__s__endless"])
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await until(lambda: _was_cancelled(host))
        await until(lambda: stored() == [])


async def _was_cancelled(host: Host) -> bool:
    return ["tasks/cancel", "t1"] in await notes(host)


async def test_the_time_limit_applies_and_cancels_the_task(era: str, home: Path):
    async with host_of(era, home) as host:
        await host.ready()
        with pytest.raises(CallTimeout) as raised:
            await host.call("mcp__s__endless", timeout_seconds=0.5)
        assert (raised.value.method, raised.value.timeout_seconds) == ("tools/call", 0.5)
        await until(lambda: _was_cancelled(host))


async def test_a_task_continues_after_a_restart_of_its_server(era: str, home: Path):
    async with host_of(era, home) as host:
        await host.ready()
        calling = asyncio.create_task(host.call("mcp__s__work", {"steps": 15}, timeout_seconds=LIMIT))
        await until(lambda: stored() == ["mcp__s__work"])
        await asyncio.gather(host.call("mcp__s__die"), return_exceptions=True)
        assert (await calling).text == "done"
        assert [method for method, _ in await notes(host)].count("tools/call") == 1


async def test_a_long_call_moves_to_the_background_and_is_fetched_later(era: str, home: Path):
    async with host_of(era, home) as host:
        await host.ready()
        outcome = await host.call(
            "mcp__s__work", {"steps": 8}, timeout_seconds=LIMIT, background_after_seconds=0.1
        )
        assert outcome.task is not None
        assert not outcome.is_error
        assert outcome.task in outcome.text
        assert [info.id for info in await host.tasks.list()] == [outcome.task]
        info = await host.tasks.get(outcome.task)
        assert (info.server, info.tool, info.status) == ("s", "mcp__s__work", "working")
        done = await host.tasks.result(outcome.task, timeout_seconds=LIMIT)
        assert (done.text, done.tool) == ("done", "mcp__s__work")
        assert await host.tasks.list() == []
        assert not await _was_cancelled(host)


async def test_a_later_host_fetches_the_result(era: str, home: Path):
    async with host_of(era, home) as host:
        await host.ready()
        outcome = await host.call("mcp__s__work", {"steps": 5}, background_after_seconds=0)
    assert outcome.task is not None
    async with host_of(era, home) as host:
        await host.ready()
        assert [info.id for info in await host.tasks.list()] == [outcome.task]
        assert (await host.tasks.result(outcome.task, timeout_seconds=LIMIT)).text == "done"
        assert [note for note in await notes(host) if note[0] == "tools/call"] == [["tools/call", "work"]]


async def test_a_task_can_be_cancelled_by_its_id(era: str, home: Path):
    async with host_of(era, home) as host:
        await host.ready()
        outcome = await host.call("mcp__s__endless", background_after_seconds=0)
        assert outcome.task is not None
        assert (await host.tasks.cancel(outcome.task)).status == "cancelled"
        assert await _was_cancelled(host)
        assert await host.tasks.list() == []
        with pytest.raises(TaskNotFound):
            await host.tasks.cancel(outcome.task)


async def test_unknown_and_expired_tasks_are_a_named_error(era: str, home: Path):
    async with host_of(era, home) as host:
        await host.ready()
        assert isinstance((await host.tasks.result("task_none")).error, TaskNotFound)
        with pytest.raises(TaskNotFound, match="no running task has this id"):
            await host.tasks.get("task_none")
        outcome = await host.call("mcp__s__endless", background_after_seconds=0)
        assert outcome.task is not None
        await host.call("mcp__s__forget")
        found = await host.tasks.result(outcome.task, timeout_seconds=LIMIT)
        assert isinstance(found.error, TaskNotFound)
        assert "does not know it any more (no such task)" in found.text
        assert await host.tasks.list() == []


async def test_a_task_belongs_to_the_entry_that_it_was_created_at(era: str, home: Path):
    async with host_of(era, home) as host:
        await host.ready()
        outcome = await host.call("mcp__s__endless", background_after_seconds=0)
    assert outcome.task is not None
    async with Host({"s": entry(era, home, env={"OTHER": "1"})}, permission_mode="bypassPermissions") as host:
        await host.ready()
        before = await notes(host)
        found = await host.tasks.result(outcome.task)
        assert isinstance(found.error, TaskNotFound)
        assert "the entry of its server has changed since" in found.text
        assert await notes(host) == before


async def test_a_deny_of_a_tool_applies_to_its_tasks(era: str, home: Path):
    async with host_of(era, home) as host:
        await host.ready()
        outcome = await host.call("mcp__s__work", {"steps": 8}, background_after_seconds=0)
    assert outcome.task is not None
    async with host_of(era, home, rules={"deny": ["mcp__s__work"]}) as host:
        await host.ready()
        before = await notes(host)
        found = await host.tasks.result(outcome.task)
        assert isinstance(found.error, PermissionRefused)
        for request in (host.tasks.get, host.tasks.cancel):
            with pytest.raises(PermissionRefused):
                await request(outcome.task)
        assert await notes(host) == before


async def test_a_lazy_server_is_not_stopped_while_its_task_runs(era: str, home: Path):
    entry_ = entry(era, home, lazy=True)
    settings = {"DRAGOMAN_IDLE_STOP_MS": 100}
    async with Host({"s": entry_}, permission_mode="bypassPermissions", settings=settings) as host:
        await host.ready()
        pids: list[int | None] = []
        outcome = await host.call(
            "mcp__s__work",
            {"steps": 4, "poll": 300},
            timeout_seconds=LIMIT,
            on_progress=lambda _: pids.append(host.servers["s"].pid),
        )
        assert outcome.text == "done"
        # Three states, 300 ms apart, of one process.
        assert (len(pids), len(set(pids)), None in pids) == (3, 1, False)


async def test_an_ordinary_call_is_not_moved(home: Path):
    async with host_of("modern", home) as host:
        await host.ready()
        outcome = await host.call("mcp__s__notes", background_after_seconds=0)
        assert (outcome.text, outcome.task) == ("[]", None)


async def test_hooks_get_the_result_and_not_the_interim_outcome(era: str, home: Path):
    seen: list[str] = []

    def after(given: Any) -> None:
        seen.append(json.dumps(given["tool_response"]))

    async with host_of(era, home, hooks=[hook(after, "PostToolUse")]) as host:
        await host.ready()
        outcome = await host.call("mcp__s__work", {"steps": 5, "text": "the end"}, background_after_seconds=0)
        assert outcome.task is not None
        assert seen == []
        await host.tasks.result(outcome.task, timeout_seconds=LIMIT)
        assert len(seen) == 1
        assert "the end" in seen[0]


class InProcess(InMemoryServer):
    """Its tool is a task that has ended at the second look."""

    looks = 0
    declares_tasks = True

    def _service(self) -> Service:
        service = super()._service()
        handlers = {**service.handlers, "tasks/get": self._get}
        declared = {"extensions": {"io.modelcontextprotocol/tasks": {}}} if self.declares_tasks else {}
        return structs.replace(service, handlers=handlers, more_capabilities=declared)

    async def _get(self, request: ClientRequest) -> dict[str, Any]:
        self.looks += 1
        task = {"taskId": "t", "status": "working", "ttlMs": None, "pollIntervalMs": 0}
        if self.looks < 2:
            return task
        return {**task, "status": "completed", "result": {"content": [{"type": "text", "text": "done"}]}}


def in_process() -> InProcess:
    server = InProcess("own")
    created = {"resultType": "task", "taskId": "t", "status": "working", "ttlMs": None}
    server.add_tool("work", lambda arguments, context: created)
    return server


async def test_a_task_of_a_server_in_this_process_can_be_fetched_while_the_host_is_open(home: Path):
    async with Host({"own": in_process()}, permission_mode="bypassPermissions") as host:
        await host.ready()
        outcome = await host.call("mcp__own__work", background_after_seconds=0)
        assert outcome.task is not None
        assert [info.id for info in await host.tasks.list()] == [outcome.task]
        assert stored() == [], "a later process could not reach the server"
        assert (await host.tasks.result(outcome.task, timeout_seconds=LIMIT)).text == "done"
        assert await host.tasks.list() == []


async def test_a_background_call_that_becomes_a_task_stays_one_entry(home: Path):
    server = in_process()
    server.declares_tasks = False
    async with Host({"own": server}, permission_mode="bypassPermissions") as host:
        await host.ready()
        task = (await host.call("mcp__own__work", background_after_seconds=0)).task
        assert task is not None
        await until(lambda: server.looks > 0)
        assert [info.id for info in await host.tasks.list()] == [task]
        assert (await host.tasks.result(task, timeout_seconds=LIMIT)).text == "done"
        assert await host.tasks.list() == []
